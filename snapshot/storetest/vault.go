package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
)

// RunVault saves over stores in which one call fails: every nth call, in the long form
// each one, in every mode. An older snapshot must remain and open, latest must name it,
// and nothing of the failed save may remain. A repeated save must then succeed.
func RunVault(t *testing.T, open Open, every int) {
	if everyCall() {
		every = 1
	}
	keys := testKeys(t)
	for _, mode := range []faultstore.Mode{faultstore.Refuse, faultstore.Lose, faultstore.Dead} {
		t.Run(fmt.Sprintf("mode %d", mode), func(t *testing.T) {
			for n := 1 + int(mode)%every; ; n += every {
				calls := saveWithFault(t, open(t), keys, n, mode)
				if n <= calls {
					continue
				}
				if calls < 10 { // none failed
					t.Errorf("a save made only %d calls", calls)
				}
				break
			}
		})
	}
}

func testKeys(t *testing.T) snapshot.Keys {
	t.Helper()
	return snapshot.NewKeys(must[*age.X25519Identity](t)(age.GenerateX25519Identity()), [32]byte{1})
}

func draft(n int) snapshot.Draft {
	return snapshot.Draft{
		ID: id(n), Location: place, Mode: snapshot.Filesystem, CreatedAt: time.Unix(1_800_000_000, 0),
		Entries: []snapshot.Entry{{Name: "state.json", Data: fmt.Appendf(nil, "state %d", n)}},
		Private: []byte(`{"tabs":1}`), AppData: []byte(`{"notes":1}`),
	}
}

// saveWithFault makes a call of the second of two saves fail, and returns how many calls
// that save made.
func saveWithFault(t *testing.T, inner snapshot.Store, keys snapshot.Keys, n int, mode faultstore.Mode) int {
	t.Helper()
	defer func() {
		if err := inner.Close(); err != nil {
			t.Error(err)
		}
	}()
	store := faultstore.New(inner)
	now := func() time.Time { return time.Unix(1_800_000_000, 0) }
	v := snapshot.NewVault(store, keys, snapshot.Options{Now: now})
	first := must[snapshot.Snapshot](t)(v.Save(t.Context(), draft(1)))
	before := everything(t, inner)

	boom := fault.New(fault.StoreFull, "test", "planned")
	store.FailAt(n, mode, boom)
	_, err := v.Save(t.Context(), draft(2))
	calls := store.Calls()
	store.FailAt(0, faultstore.Refuse, nil)

	if n > calls {
		if err != nil {
			t.Fatalf("a save without a fault: %v", err)
		}
		return calls
	}
	wantID := id(1)
	if err == nil {
		// A save may survive only a fault after everything was done, or in a call whose
		// result is not needed. Then the snapshot must be complete.
		wantID = id(2)
	} else if !errors.Is(err, error(boom)) {
		t.Errorf("call %d: the save's error is not the fault: %v", n, err)
	}
	latest, openErr := v.Latest(t.Context(), place)
	if mode == faultstore.Dead && latest.ID == id(2) {
		wantID = id(2) // nothing could be undone: then it must be complete
	}
	if openErr != nil || latest.ID != wantID {
		t.Fatalf("call %d: latest is %q, %v; save: %v", n, latest.ID, openErr, err)
	}
	for _, s := range []snapshot.Snapshot{first, latest} {
		got, err := v.Unpack(t.Context(), s, filepath.Join(t.TempDir(), "out"), snapshot.UnpackOptions{Keep: []string{"state.json"}})
		if err != nil || !bytes.HasPrefix(got.Kept["state.json"], []byte("state ")) {
			t.Fatalf("call %d: %s does not unpack: %v", n, s.ID, err)
		}
	}
	if err == nil {
		return calls
	}
	if mode != faultstore.Dead {
		if diff := cmp.Diff(before, everything(t, inner)); diff != "" {
			t.Errorf("call %d: something remains (-before +after):\n%s", n, diff)
		}
		must[snapshot.Snapshot](t)(v.Save(t.Context(), draft(2)))
	}
	return calls
}

// everything lists the store's archives and the objects of the suite's location.
func everything(t *testing.T, s snapshot.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, folder := range []snapshot.Key{snapshot.ArchiveFolder(), must[snapshot.Key](t)(place.HistoryFolder())} {
		for _, name := range must[[]string](t)(s.List(t.Context(), folder, 1000, "")) {
			all[folder.String()+"/"+name] = "there"
		}
	}
	for _, key := range []snapshot.Key{must[snapshot.Key](t)(place.LatestKey()), must[snapshot.Key](t)(place.ManifestKey())} {
		all[key.String()] = string(content(t, s, key))
	}
	return all
}

// Files lists every regular file below a folder with its size, for stores on a disk. It
// leaves out the lock file of the folder's owner.
func Files(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	files := map[string]int64{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && path != filepath.Join(dir, "lock") {
			files[path] = info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
