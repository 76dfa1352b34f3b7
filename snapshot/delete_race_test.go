package snapshot_test

import (
	"context"
	"testing"
	"time"

	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// beforeDelete calls a function before a key is deleted.
type beforeDelete struct {
	*memstore.Store
	key snapshot.Key
	do  func()
}

func (b *beforeDelete) Delete(ctx context.Context, key snapshot.Key) error {
	if key == b.key {
		b.do()
	}
	return b.Store.Delete(ctx, key)
}

// A process that deletes a location's only snapshot must not delete the latest that
// another process has just saved.
func TestDeleteDuringOtherSave(t *testing.T) {
	store := memstore.New(0, time.Now)
	keys := snapshot.NewKeys(newIdentity(t), [32]byte{1})
	latest, err := place.LatestKey()
	if err != nil {
		t.Fatal(err)
	}
	other := vaultOf(store, keys)
	one := vaultOf(&beforeDelete{Store: store, key: latest, do: func() {
		save(t, other, draft(2, snapshot.Entry{Name: "state.json", Data: []byte("two")}))
	}}, keys)
	save(t, one, draft(1))
	if err := one.Delete(t.Context(), place, id(1), storetest.NotInUse); err != nil {
		t.Fatal(err)
	}
	if s, err := other.Latest(t.Context(), place); err != nil || s.ID != id(2) {
		t.Errorf("latest is %q, %v", s.ID, err)
	}
	_, err = one.Check(t.Context(), snapshot.CheckOptions{ReadData: true}, func(f snapshot.Finding) error {
		t.Errorf("found %+v", f)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
