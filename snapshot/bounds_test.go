package snapshot_test

import (
	"context"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// A call that waits for a lock ends with its context and leaves nothing behind.
func TestLocksEndWithTheirContext(t *testing.T) {
	v, _ := newVault(t)
	entry := snapshot.Entry{Name: "a", Data: []byte("same")}
	a := save(t, v, draft(1, entry))
	key, err := snapshot.ArchiveKey(a.Archive.ID)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(context.Context) error{
		"save":   func(ctx context.Context) error { _, err := v.Save(ctx, draft(2, entry)); return err },
		"delete": func(ctx context.Context) error { return v.Delete(ctx, place, a.ID, storetest.NotInUse) },
	}
	ofLocation := map[string]func(context.Context) error{
		"repair": func(ctx context.Context) error { return v.Repair(ctx, place, false) },
	}
	ofArchive := map[string]func(context.Context) error{
		"drop": func(ctx context.Context) error { return v.DropArchive(ctx, a.Archive.ID) },
	}
	for held, lock := range map[string]func(context.Context) (func(), error){
		"location": func(ctx context.Context) (func(), error) { return v.Lock(ctx, place) },
		"archive":  func(ctx context.Context) (func(), error) { return v.LockArchive(ctx, key) },
	} {
		unlock, err := lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		also := ofLocation
		if held == "archive" {
			also = ofArchive
		}
		for _, list := range []map[string]func(context.Context) error{calls, also} {
			for name, call := range list {
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- call(ctx) }()
				for tick, waited := time.Tick(time.Millisecond), false; !waited; <-tick {
					_, waited = v.Locks()
				}
				cancel()
				if err := <-ended; !fault.Is(err, fault.Timeout) {
					t.Errorf("%s while the %s is locked: %v", name, held, err)
				}
			}
		}
		unlock()
	}
	if n, _ := v.Locks(); n != 0 {
		t.Errorf("%d locks are left", n)
	}
	if err := v.Verify(t.Context(), a); err != nil {
		t.Error(err)
	}
}

// A vault remembers a snapshot until the catalogue has it.
func TestCommittedIsForgotten(t *testing.T) {
	v, _ := newVault(t)
	entry := snapshot.Entry{Name: "a", Data: []byte("same")}
	for n := 1; n < 12; n++ {
		v.MarkCommitted(save(t, v, draft(n, entry)))
	}
	if n := v.Sharing(); n != 0 {
		t.Errorf("%d snapshots are remembered", n)
	}
}
