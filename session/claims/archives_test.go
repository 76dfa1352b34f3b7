package claims_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/claims"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

func id(n int) string { return fmt.Sprintf("01900000-0000-7000-8000-%012x", n) }

// shared is a store that two nodes use. The steps of the first can be watched.
type shared struct {
	bytes *memstore.Store
	at    func(name string) error
}

func (s *shared) of(n int, uses snapshot.Uses) (snapshot.Store, snapshot.Uses) {
	if n > 0 {
		return s.bytes, uses
	}
	watched := &steps{Store: s.bytes, Uses: uses, at: func(name string) error { return s.at(name) }}
	return watched, watched
}

func ignore(string) error { return nil }

func (s *shared) archives(t *testing.T) int {
	t.Helper()
	names, err := s.bytes.List(t.Context(), snapshot.ArchiveFolder(), 1000, "")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// acts are what one node does, in the steps of which another one does something.
var acts = map[string]func(ctx context.Context, n *node) error{
	"save":             func(ctx context.Context, n *node) error { return n.save(ctx, id(2), "same") },
	"save and nothing": func(ctx context.Context, n *node) error { return n.save(ctx, id(2), "other") },
	"delete":           func(ctx context.Context, n *node) error { return n.remove(ctx, id(1)) },
}

// count returns how many steps an act has.
func count(t *testing.T, act func(context.Context, *node) error) (steps int) {
	t.Helper()
	s := &shared{memstore.New(0, time.Now), ignore}
	both := nodes(t, s.of, "a", "b")
	both[0].session()
	if err := both[1].save(t.Context(), id(1), "same"); err != nil {
		t.Fatal(err)
	}
	s.at = func(string) error { steps++; return nil }
	if err := act(t.Context(), both[0]); err != nil {
		t.Fatal(err)
	}
	return steps
}

// Whatever another node does between two steps of a save or a delete, each committed snapshot
// has its archive afterwards. So it is if the first node dies at that step and continues after
// it was taken over, or if the step fails.
func TestArchivesOfTwoNodes(t *testing.T) {
	for name, act := range acts {
		for _, how := range []string{"continues", "fails", "was taken over"} {
			t.Run(name+" "+how, func(t *testing.T) {
				for n := range count(t, act) {
					atStep(t, n+1, act, how)
				}
			})
		}
	}
}

func atStep(t *testing.T, n int, act func(context.Context, *node) error, how string) {
	t.Helper()
	s := &shared{memstore.New(0, time.Now), ignore}
	both := nodes(t, s.of, "a", "b")
	a, b := both[0], both[1]
	a.session()
	if err := b.save(t.Context(), id(1), "same"); err != nil {
		t.Fatal(err)
	}
	at := "nowhere"
	s.at = func(name string) error {
		if n--; n != 0 {
			return nil
		}
		at = name
		if how == "was taken over" {
			b.takeOver(a)
		}
		// B removes the last snapshot that has the archive, if it can, and saves an equal one.
		_ = b.remove(t.Context(), id(1)) // A may have removed it
		if err := b.save(t.Context(), id(3), "same"); err != nil {
			t.Errorf("B cannot save at step %s: %v", name, err)
		}
		if how == "fails" {
			return errors.New("injected")
		}
		return nil
	}
	err := act(t.Context(), a)
	if how == "continues" && err != nil && at != "nowhere" {
		if _, lookErr := b.Snapshots.Snapshot(t.Context(), id(1)); lookErr == nil {
			t.Errorf("at step %s: %v", at, err)
		}
	}
	if b.intact() == 0 {
		t.Errorf("at step %s: B's snapshot is gone", at)
	}
	if t.Failed() {
		t.Fatalf("failed at step %s (A: %v)", at, err)
	}
	// B's removal of its own snapshot must not be disturbed by what A has left.
	if err := b.remove(t.Context(), id(3)); err != nil {
		t.Fatalf("at step %s: %v", at, err)
	}
	b.intact()
	if how == "was taken over" {
		claims.RemoveLeftovers(t.Context(), b.Claims, b.vault, time.Now().Add(48*time.Hour), slog.New(slog.DiscardHandler))
		b.intact()
		rows, _, err := b.Snapshots.Snapshots(t.Context(), profiles.SnapshotFilter{})
		if err != nil {
			t.Fatal(err)
		}
		named := map[string]bool{}
		for _, row := range rows {
			named[row.ArchiveID] = true
		}
		if left := s.archives(t); left > len(named) {
			t.Errorf("at step %s: %d archives are left, and snapshots have %d", at, left, len(named))
		}
	}
}
