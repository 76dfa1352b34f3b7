package claims_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
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

// scenario is what node A does, and what node B does in each of A's steps.
type scenario struct {
	first func(a, b *node) error // before
	a     func(ctx context.Context, a *node) error
	b     func(ctx context.Context, b *node) error
}

func scenarios() map[string]scenario {
	none := func(_, _ *node) error { return nil }
	again := func(ctx context.Context, b *node) error {
		_ = b.remove(ctx, id(1)) // A may have removed it
		return b.save(ctx, id(3), "same")
	}
	return map[string]scenario{
		"an equal save": {none, func(ctx context.Context, a *node) error { return a.save(ctx, id(2), "same") }, again},
		"another save":  {none, func(ctx context.Context, a *node) error { return a.save(ctx, id(2), "other") }, again},
		"a delete":      {none, func(ctx context.Context, a *node) error { return a.remove(ctx, id(1)) }, again},
		// Both have removed the records of two snapshots with one archive.
		"two deletes": {
			func(a, b *node) error {
				ctx := context.Background()
				if err := b.save(ctx, id(4), "same"); err != nil {
					return err
				}
				_, one := a.Snapshots.DeleteSnapshot(ctx, id(1))
				_, other := b.Snapshots.DeleteSnapshot(ctx, id(4))
				return errors.Join(one, other)
			},
			func(ctx context.Context, a *node) error {
				return a.vault.Delete(ctx, place, id(1), a.Snapshots.ArchiveInUse)
			},
			func(ctx context.Context, b *node) error {
				return errors.Join(b.vault.Delete(ctx, place, id(4), b.Snapshots.ArchiveInUse), b.save(ctx, id(3), "same"))
			},
		},
	}
}

// If another node deletes all equal snapshots and saves one between two steps of a save or a
// delete, each committed snapshot has its archive afterwards. So it is if the first node stops at
// that step and continues after it was taken over, or has also joined again, or if the step fails.
func TestArchivesOfTwoNodes(t *testing.T) {
	for name, does := range scenarios() {
		for _, how := range []string{"continues", "fails", "was taken over", joinedAgain} {
			t.Run(name+" "+how, func(t *testing.T) {
				both := nodes(t, nil, "a", "b")
				n := 1
				for atStep(t, both, n, does, how) {
					n++
				}
			})
		}
	}
}

// joinedAgain is what happens to A while B only removes the snapshots.
const joinedAgain = "was taken over and has joined again"

// atStep has B act in the nth step of A. It returns false if A has fewer steps.
func atStep(t *testing.T, both []*node, n int, does scenario, how string) (has bool) {
	t.Helper()
	s := &shared{memstore.New(0, time.Now), ignore}
	again(t, both, s.of)
	a, b := both[0], both[1]
	a.session()
	if err := b.save(t.Context(), id(1), "same"); err != nil {
		t.Fatal(err)
	}
	if err := does.first(a, b); err != nil {
		t.Fatal(err)
	}
	at := ""
	s.at = func(name string) error {
		if n--; n != 0 {
			return nil
		}
		at = name
		if how == "was taken over" || how == joinedAgain {
			b.takeOver(a)
		}
		act := does.b
		if how == joinedAgain {
			act = func(ctx context.Context, b *node) error {
				_ = b.remove(ctx, id(1)) // A may have removed it
				a.join(a.is.ID)
				return nil
			}
		}
		if err := act(t.Context(), b); err != nil {
			t.Errorf("B fails at step %s: %v", name, err)
		}
		if how == "fails" {
			return errors.New("injected")
		}
		return nil
	}
	err := does.a(t.Context(), a)
	if at == "" {
		return false
	}
	if how == "continues" && err != nil {
		t.Errorf("A fails at step %s: %v", at, err)
	}
	if how == joinedAgain {
		b.intact()
		return !t.Failed()
	}
	if b.intact() == 0 {
		t.Errorf("at step %s: B's snapshot is gone", at)
	}
	// What A has left must not disturb others.
	if err := b.remove(t.Context(), id(3)); err != nil {
		t.Errorf("at step %s: %v", at, err)
	}
	b.intact()
	if how != "was taken over" {
		return !t.Failed()
	}
	b.claims().RemoveLeftovers(t.Context(), b.vault, time.Now().Add(48*time.Hour))
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
	return !t.Failed()
}
