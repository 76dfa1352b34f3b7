package snapshot_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// Concurrent saves to one location all succeed, and latest is one of them.
func TestConcurrentSaves(t *testing.T) {
	v, _ := newVault(t)
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			// Half of them save equal contents.
			if _, err := v.Save(t.Context(), draft(n, snapshot.Entry{Name: "a", Data: fmt.Append(nil, n%4)})); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ids, next, err := v.List(t.Context(), place, 5, "")
	if err != nil || len(ids) != 5 || next != id(4) {
		t.Fatalf("first page %q, %q, %v", ids, next, err)
	}
	rest, next, err := v.List(t.Context(), place, 5, next)
	if err != nil || len(rest) != 3 || next != "" {
		t.Fatalf("second page %q, %q, %v", rest, next, err)
	}
	latest, err := v.Latest(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, one := range append(ids, rest...) {
		s, err := v.Open(t.Context(), place, one)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(t.Context(), s); err != nil {
			t.Error(err)
		}
		found = found || one == latest.ID
	}
	if !found {
		t.Errorf("latest is %s", latest.ID)
	}
}

// After a delete, latest becomes the newest remaining snapshot. The last delete removes
// it.
func TestDeleteMovesLatest(t *testing.T) {
	v, _ := newVault(t)
	for n := 1; n <= 3; n++ {
		save(t, v, draft(n, snapshot.Entry{Name: "a", Data: fmt.Append(nil, n)}))
	}
	for _, step := range []struct{ remove, latest int }{{2, 3}, {3, 1}} {
		if err := v.Delete(t.Context(), place, id(step.remove), storetest.NotInUse); err != nil {
			t.Fatal(err)
		}
		if s, err := v.Latest(t.Context(), place); err != nil || s.ID != id(step.latest) {
			t.Errorf("after %d latest is %q, %v", step.remove, s.ID, err)
		}
	}
	if err := v.Delete(t.Context(), place, id(1), storetest.NotInUse); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Latest(t.Context(), place); !fault.Is(err, fault.SnapshotNotFound) {
		t.Errorf("Latest of nothing: %v", err)
	}
}

// RemoveUncommitted removes snapshots that were saved but never committed, and updates
// latest.
func TestRemoveUncommitted(t *testing.T) {
	v, store := newVault(t)
	for n := range 3 {
		save(t, v, draft(n, snapshot.Entry{Name: "a", Data: fmt.Append(nil, n)}))
	}
	err := v.RemoveUncommitted(t.Context(), place, func(is string) (bool, error) { return is == id(1), nil })
	if err != nil {
		t.Fatal(err)
	}
	if ids, _, err := v.List(t.Context(), place, 0, ""); err != nil || !cmp.Equal(ids, []string{id(1)}) {
		t.Errorf("left: %q, %v", ids, err)
	}
	if s, err := v.Latest(t.Context(), place); err != nil || s.ID != id(1) {
		t.Errorf("latest is %q, %v", s.ID, err)
	}
	if names, err := store.List(t.Context(), snapshot.ArchiveFolder(), 9, ""); err != nil || len(names) != 3 {
		t.Errorf("archives: %q, %v; another may use them", names, err)
	}
}

// latest must not name a snapshot whose delete died after it had removed the archive.
func TestLatestSkipsHalfDeleted(t *testing.T) {
	v, store := newVault(t)
	var all []snapshot.Snapshot
	for n := range 3 {
		all = append(all, save(t, v, draft(n, snapshot.Entry{Name: "a", Data: fmt.Append(nil, n)})))
	}
	key, err := snapshot.ArchiveKey(all[1].Archive.ID)
	if err == nil {
		err = store.Delete(t.Context(), key)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Delete(t.Context(), place, id(2), storetest.NotInUse); err != nil {
		t.Fatal(err)
	}
	if s, err := v.Latest(t.Context(), place); err != nil || s.ID != id(0) {
		t.Errorf("latest is %q, %v", s.ID, err)
	}
}
