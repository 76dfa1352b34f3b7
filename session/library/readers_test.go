package library

import (
	"context"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// Readers and other removals wait until a removal has ended.
func TestReadersWaitForARemoval(t *testing.T) {
	r := newReaders()
	done, err := r.remove(t.Context(), "snap")
	if err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = r.hold(canceled, "snap", "read")
	if !fault.Is(err, fault.Timeout) {
		t.Errorf("got %v, want a timeout", err)
	}
	_, err = r.remove(canceled, "snap")
	if !fault.Is(err, fault.Timeout) {
		t.Errorf("got %v, want a timeout", err)
	}

	got := make(chan func(), 1)
	go func() {
		release, err := r.hold(t.Context(), "snap", "read")
		if err != nil {
			t.Error(err)
		}
		got <- release
	}()
	if r.reads("snap") {
		t.Error("the snapshot was held while it was being removed")
	}
	done()
	release := <-got
	other, err := r.hold(t.Context(), "snap", "compared")
	if err != nil {
		t.Fatal(err)
	}
	release()
	release() // twice is once
	_, err = r.remove(t.Context(), "snap")
	if !fault.Is(err, fault.SnapshotInUse) {
		t.Errorf("got %v, want snapshot_in_use", err)
	}
	other()
	if done, err = r.remove(t.Context(), "snap"); err != nil {
		t.Fatal(err)
	}
	done()
	if len(r.held)+len(r.removals) != 0 {
		t.Errorf("left: %d, %d", len(r.held), len(r.removals))
	}
}
