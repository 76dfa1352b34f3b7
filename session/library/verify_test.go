package library

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/snapshot"
)

// oneSnapshot is a catalogue with one snapshot, which belongs to alice.
type oneSnapshot struct {
	Records
	SnapshotRecords
}

func (oneSnapshot) Snapshot(_ context.Context, id string) (profiles.Snapshot, error) {
	return profiles.Snapshot{ID: id, UserID: "alice", SessionID: "s-1"}, nil
}

// slowVault is a vault whose Open waits until proceed is closed.
type slowVault struct {
	Vault
	opened  chan struct{} // receives a value for each Open that waits
	proceed chan struct{}
}

func (v slowVault) Open(context.Context, snapshot.Location, string) (snapshot.Snapshot, error) {
	v.opened <- struct{}{}
	<-v.proceed
	return snapshot.Snapshot{}, fault.New(fault.SnapshotNotFound, "test", "it is gone")
}

// At most maxVerifying snapshots are verified at once. A caller that waits may cancel.
func TestVerificationsWait(t *testing.T) {
	vault := slowVault{opened: make(chan struct{}), proceed: make(chan struct{})}
	l := New(Deps{Records: oneSnapshot{}, Snapshots: NewSnapshots(oneSnapshot{}, vault, nil, slog.New(slog.DiscardHandler)), Now: time.Now})
	alice := access.Caller{UserID: "alice", Rights: []access.Right{access.RightUse}}
	done := make(chan error, maxVerifying)
	for range maxVerifying {
		go func() {
			_, err := l.VerifySnapshot(t.Context(), alice, "snap")
			done <- err
		}()
		<-vault.opened
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.VerifySnapshot(canceled, alice, "snap"); !fault.Is(err, fault.Timeout) {
		t.Errorf("one more: %v", err)
	}
	close(vault.proceed)
	for range maxVerifying {
		if err := <-done; err != nil {
			t.Errorf("one of the first: %v", err)
		}
	}
	go func() { <-vault.opened }()
	if _, err := l.VerifySnapshot(t.Context(), alice, "snap"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
