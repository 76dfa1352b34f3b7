package snapshot_test

import (
	"bytes"
	"testing"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// An oversized object in place of latest or manifest must not block later saves to its
// location.
func TestSaveOverOversized(t *testing.T) {
	v, store := newVault(t)
	for n, key := range []func() (snapshot.Key, error){place.LatestKey, place.ManifestKey} {
		at, err := key()
		if err != nil {
			t.Fatal(err)
		}
		storetest.Put(t, store, at, bytes.Repeat([]byte("x"), 8<<20+2))
		saved := save(t, v, draft(n+1))
		if latest, err := v.Latest(t.Context(), place); err != nil || latest.ID != saved.ID {
			t.Errorf("over %s: latest is %s, %v", at, latest.ID, err)
		}
	}
}
