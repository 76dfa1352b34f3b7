package session

import (
	"context"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
)

// A default does not move back to a snapshot that the store has lost. It stays unchanged,
// and the error says what is missing.
func TestDefaultDoesNotMoveToLostSnapshot(t *testing.T) {
	lose := func(key func(r *rig, session, snap string) (snapshot.Key, error)) func(*rig, string, string) error {
		return func(r *rig, session, snap string) error {
			k, err := key(r, session, snap)
			if err != nil {
				return err
			}
			return r.store.Delete(context.Background(), k)
		}
	}
	document := func(_ *rig, session, snap string) (snapshot.Key, error) {
		return library.LocationOf("alice", session).DocumentKey(snap)
	}
	archive := func(r *rig, _, snap string) (snapshot.Key, error) {
		row, err := r.catalogue.Snapshot(context.Background(), snap)
		if err != nil {
			return snapshot.Key{}, err
		}
		return snapshot.ArchiveKey(row.ArchiveID)
	}
	for name, test := range map[string]struct {
		spoil func(r *rig, session, snap string) error
		want  fault.Code
	}{
		"no document": {lose(document), fault.SnapshotNotFound},
		"no archive":  {lose(archive), fault.ArchiveDamaged},
		"a cut archive": {func(r *rig, session, snap string) error {
			key, err := archive(r, session, snap)
			if err == nil {
				err = r.store.Delete(context.Background(), key)
			}
			if err == nil {
				_, err = r.store.Create(context.Background(), key, []byte("age-encryption.org/v1\n"))
			}
			return err
		}, fault.ArchiveDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			session, old := r.saved(alice, filesystem)
			r.saved(alice, asDefault)
			before, err := r.library.Default(t.Context(), alice, "alice")
			if err != nil {
				t.Fatal(err)
			}
			if err := test.spoil(r, session, old); err != nil {
				t.Fatal(err)
			}
			_, err = r.library.SetDefault(t.Context(), alice, "alice", old, nil)
			wantCode(t, err, test.want)
			if after, err := r.library.Default(t.Context(), alice, "alice"); err != nil || after.Version != before.Version || after.SnapshotID != before.SnapshotID {
				t.Errorf("the default is %+v, %v; it was %+v", after, err, before)
			}
		})
	}
}
