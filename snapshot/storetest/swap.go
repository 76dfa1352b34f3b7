package storetest

import (
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// swap checks that an object is overwritten only while it is the one that was read. It
// also checks the swapped result.
func swap(t *testing.T, s snapshot.Store) {
	key := must[snapshot.Key](t)(place.LatestKey())
	swapped := func(old, body string) bool {
		return must[bool](t)(s.Swap(t.Context(), key, []byte(old), []byte(body)))
	}
	if swapped("", "x") || content(t, s, key) != nil {
		t.Error("Swap of a missing object wrote one")
	}
	if _, err := s.Stat(t.Context(), key); !fault.Is(err, fault.SnapshotNotFound) {
		t.Errorf("Stat of a missing object: %v", err)
	}
	Put(t, s, key, []byte("one"))
	for _, seen := range []string{"", "on", "onee", "two"} {
		if swapped(seen, "x") {
			t.Errorf("Swap from %q over %q wrote", seen, "one")
		}
	}
	wantContent(t, s, key, "one")
	before := must[snapshot.Stat](t)(s.Stat(t.Context(), key))
	if !swapped("one", "") || !swapped("", "three") || !swapped("three", "three") {
		t.Error("Swap from what is there wrote nothing")
	}
	wantContent(t, s, key, "three")
	after := must[snapshot.Stat](t)(s.Stat(t.Context(), key))
	if before.Size != 3 || after.Size != 5 || before.Modified.IsZero() || after.Modified.Before(before.Modified) {
		t.Errorf("Stat: %v, then %v", before, after)
	}
	if err := replace(t, s, key, []byte("uploaded")); err != nil {
		t.Error(err)
	}
	wantContent(t, s, key, "uploaded")
	if err := replace(t, s, archiveKey(t, 7), []byte("new")); err != nil {
		t.Error(err)
	}
	wantContent(t, s, archiveKey(t, 7), "new")
}

// swapRace checks that no update is lost when many writers change one object based on
// what they read.
func swapRace(t *testing.T, s snapshot.Store) {
	SwapRace(t, must[snapshot.Key](t)(place.LatestKey()), slices.Repeat([]snapshot.Store{s}, 10))
}

// SwapRace checks that no update is lost when each store changes the object under key
// based on what it read. The stores may share the same bytes.
func SwapRace(t *testing.T, key snapshot.Key, stores []snapshot.Store) {
	t.Helper()
	const each = 5
	Put(t, stores[0], key, []byte("0"))
	var wg sync.WaitGroup
	for _, s := range stores {
		wg.Go(func() {
			for done := 0; done < each; {
				old := content(t, s, key)
				n, err := strconv.Atoi(string(old))
				if err != nil {
					t.Error(err)
					return
				}
				swapped, err := s.Swap(t.Context(), key, old, []byte(strconv.Itoa(n+1)))
				if err != nil {
					t.Error(err)
					return
				}
				if swapped {
					done++
				}
			}
		})
	}
	wg.Wait()
	wantContent(t, stores[0], key, strconv.Itoa(len(stores)*each))
}
