package storetest

import (
	"bytes"
	"context"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

func document(t *testing.T, s snapshot.Store) {
	key := must[snapshot.Key](t)(place.DocumentKey(id(1)))
	if !must[bool](t)(s.Create(t.Context(), key, []byte("one"))) {
		t.Error("Create of a free key created nothing")
	}
	if must[bool](t)(s.Create(t.Context(), key, []byte("two"))) {
		t.Error("Create of a taken key created")
	}
	wantContent(t, s, key, "one")
	for _, body := range []string{"three", "3", ""} {
		Put(t, s, key, []byte(body))
		wantContent(t, s, key, body)
	}
	for range 2 {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Open(t.Context(), key); !fault.Is(err, fault.SnapshotNotFound) {
		t.Errorf("Open of a missing object: %v", err)
	}
	Put(t, s, key, []byte("again"))
	wantContent(t, s, key, "again")
}

// Put writes an object whether or not one exists, for tests that plant what no save would
// write.
func Put(t testing.TB, s snapshot.Store, key snapshot.Key, body []byte) {
	t.Helper()
	if err := s.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if created, err := s.Create(t.Context(), key, body); err != nil || !created {
		t.Fatalf("Create: %v, %v", created, err)
	}
}

// replace uploads an object over any existing one.
func replace(t *testing.T, s snapshot.Store, key snapshot.Key, body []byte) error {
	t.Helper()
	up := must[snapshot.Upload](t)(s.Upload(t.Context()))
	must[int](t)(up.Write(body))
	err := up.Replace(t.Context(), key, sumOf(body))
	for range 2 {
		if aborted := up.Abort(); aborted != nil {
			t.Errorf("Abort after Replace: %v", aborted)
		}
	}
	return err
}

func openSurvives(t *testing.T, s snapshot.Store) {
	key := must[snapshot.Key](t)(place.LatestKey())
	for _, change := range []func() error{
		func() error { _, err := s.Swap(t.Context(), key, []byte("old"), []byte("new")); return err },
		func() error { return replace(t, s, key, []byte("newer")) },
		func() error { return s.Delete(t.Context(), key) },
	} {
		Put(t, s, key, []byte("old"))
		r := must[io.ReadCloser](t)(s.Open(t.Context(), key))
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if got := must[[]byte](t)(io.ReadAll(r)); string(got) != "old" {
			t.Errorf("an open object became %q", got)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func list(t *testing.T, s snapshot.Store) {
	folder := must[snapshot.Key](t)(place.HistoryFolder())
	if names := must[[]string](t)(s.List(t.Context(), folder, 10, "")); len(names) > 0 {
		t.Errorf("a missing folder holds %q", names)
	}
	var want []string
	for _, n := range []int{3, 1, 5, 2, 4} {
		must[bool](t)(s.Create(t.Context(), must[snapshot.Key](t)(place.DocumentKey(id(n))), []byte("x")))
		want = append(want, "snapshot_"+id(n)+".json")
	}
	slices.Sort(want)
	var got []string
	for after := ""; ; {
		page := must[[]string](t)(s.List(t.Context(), folder, 2, after))
		if len(page) == 0 {
			break
		}
		got, after = append(got, page...), page[len(page)-1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if got := must[[]string](t)(s.List(t.Context(), folder, 9, "snapshot_"+id(3))); len(got) != 3 {
		t.Errorf("a cursor between names gave %q", got)
	}
	Put(t, s, must[snapshot.Key](t)(place.ManifestKey()), []byte("x"))
	other := place
	other.Session = "s-0"
	Put(t, s, must[snapshot.Key](t)(other.LatestKey()), []byte("x"))
	places := must[[]snapshot.Location](t)(snapshot.Locations(t.Context(), s))
	if diff := cmp.Diff([]snapshot.Location{other, place}, places); diff != "" {
		t.Errorf("locations (-want +got):\n%s", diff)
	}
}

func badCalls(t *testing.T, s snapshot.Store) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, at := range map[string]struct {
		ctx context.Context
		key snapshot.Key
	}{"zero key": {t.Context(), snapshot.Key{}}, "cancelled": {cancelled, archiveKey(t, 1)}} {
		_, opened := s.Open(at.ctx, at.key)
		_, created := s.Create(at.ctx, at.key, nil)
		_, listed := s.List(at.ctx, at.key, 1, "")
		_, stated := s.Stat(at.ctx, at.key)
		_, swapped := s.Swap(at.ctx, at.key, nil, nil)
		for call, err := range map[string]error{
			"Open": opened, "Create": created, "List": listed,
			"Stat": stated, "Swap": swapped, "Delete": s.Delete(at.ctx, at.key),
		} {
			if !fault.Is(err, fault.StoreFailed) {
				t.Errorf("%s, %s: %v, want store_failed", name, call, err)
			}
		}
	}
	if err := s.Health(t.Context()); err != nil {
		t.Errorf("Health: %v", err)
	}
	if free := must[int64](t)(s.FreeSpace(t.Context())); free <= 0 {
		t.Errorf("FreeSpace of an empty store: %d", free)
	}
}

// race checks that one of many creates of a key wins completely, while folders appear and
// disappear.
func race(t *testing.T, s snapshot.Store) {
	key := must[snapshot.Key](t)(place.DocumentKey(id(1)))
	for range 20 {
		var wg sync.WaitGroup
		won := make([]bool, 4)
		for i := range won {
			wg.Go(func() {
				created, err := s.Create(t.Context(), key, bytes.Repeat([]byte{byte('a' + i)}, 1000))
				if err != nil {
					t.Error(err)
				}
				won[i] = created
			})
		}
		wg.Wait()
		winner := slices.Index(won, true)
		if winner < 0 || slices.Contains(won[winner+1:], true) {
			t.Fatalf("winners: %v", won)
		}
		if got := content(t, s, key); !bytes.Equal(got, bytes.Repeat([]byte{byte('a' + winner)}, 1000)) {
			t.Fatalf("the winner %d is not what is stored: %.20q", winner, got)
		}
		if err := s.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
}
