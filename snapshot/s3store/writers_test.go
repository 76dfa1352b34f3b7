package s3store_test

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/s3store"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// writers is the number of daemons that share the bucket.
const writers = 10

func openMany(t *testing.T, server *s3test.Server) []*s3store.Store {
	t.Helper()
	o := server.Options(t)
	stores := make([]*s3store.Store, writers)
	for i := range stores {
		stores[i] = open(t, o)
	}
	return stores
}

// Daemons share one bucket without knowing of each other. Of the creates of one key one
// wins, and no change of an object is lost.
func TestWritersOfOneKey(t *testing.T) {
	stores := openMany(t, s3test.Start(t))
	for range 5 {
		won := make([]bool, writers)
		var wg sync.WaitGroup
		for i, s := range stores {
			wg.Go(func() {
				var err error
				if won[i], err = s.Create(t.Context(), archive, bytes.Repeat([]byte{byte('a' + i)}, 1000)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		winner := slices.Index(won, true)
		if winner < 0 || slices.Contains(won[winner+1:], true) {
			t.Fatalf("winners: %v", won)
		}
		if got := content(t, stores[0], archive); !bytes.Equal(got, bytes.Repeat([]byte{byte('a' + winner)}, 1000)) {
			t.Fatalf("what %d won with is not what is stored: %.20q", winner, got)
		}
		if err := stores[winner].Delete(t.Context(), archive); err != nil {
			t.Fatal(err)
		}
	}

	all := make([]snapshot.Store, len(stores))
	for i, s := range stores {
		all[i] = s
	}
	storetest.SwapRace(t, archive, all)
}

// Ten daemons save to one location at once. Each snapshot is stored completely, and
// latest names one of them.
func TestWritersOfOneLocation(t *testing.T) {
	stores := openMany(t, s3test.Start(t))
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	keys := snapshot.NewKeys(identity, [32]byte{1})
	place := snapshot.Location{Owner: "0123456789abcdef0123456789abcdef", Session: "s-1", Scope: "agent", ScopeID: "browser"}
	vaults := make([]*snapshot.Vault, writers)
	ids := make([]string, writers)
	var wg sync.WaitGroup
	for i, s := range stores {
		vaults[i] = snapshot.NewVault(s, keys, snapshot.Options{Now: time.Now, Reserve: 1})
		ids[i] = fmt.Sprintf("01900000-0000-7000-8000-%012x", i)
		wg.Go(func() {
			_, err := vaults[i].Save(t.Context(), snapshot.Draft{
				ID: ids[i], Location: place, Mode: snapshot.Filesystem, CreatedAt: time.Unix(1_800_000_000, 0),
				// Every two saves have equal contents, so two saves write one archive at
				// once.
				Entries: []snapshot.Entry{{Name: "state.json", Data: fmt.Appendf(nil, "state %d", i/2)}},
			})
			if err != nil {
				t.Errorf("save %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	v := vaults[0]
	got, _, err := v.List(t.Context(), place, 100, "")
	if err != nil || !slices.Equal(got, ids) {
		t.Errorf("stored are %q, %v", got, err)
	}
	latest, err := v.Latest(t.Context(), place)
	if err != nil || !slices.Contains(ids, latest.ID) {
		t.Errorf("latest is %q, %v", latest.ID, err)
	}
	for i, id := range ids {
		s, err := v.Open(t.Context(), place, id)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := v.Unpack(t.Context(), s, t.TempDir()+"/out", snapshot.UnpackOptions{Keep: []string{"state.json"}})
		if err != nil || string(unpacked.Kept["state.json"]) != fmt.Sprintf("state %d", i/2) {
			t.Errorf("%s: %q, %v", id, unpacked.Kept["state.json"], err)
		}
	}
}
