package session

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// A start says whether catalogue, store and keys belong together, and is refused
// by none of it.
func TestAStartTellsOfAMismatch(t *testing.T) {
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	emptied := func(t *testing.T, r *rig) {
		db, err := sqldb.Open(t.Context(), sqldb.Options{Path: filepath.Join(t.TempDir(), "stasis.db"), Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		r.catalogue.use(db)
	}
	for name, test := range map[string]struct {
		change func(t *testing.T, r *rig)
		want   []string // in the log; none: it says nothing of it
	}{
		"all is well": {func(*testing.T, *rig) {}, nil},
		"another archive-key": {func(_ *testing.T, r *rig) { r.keys = snapshot.NewKeys(r.identity, [32]byte{2}) },
			[]string{"ERROR", "archive-key is probably not the one", "from a backup"}},
		"another identity": {func(_ *testing.T, r *rig) { r.keys = snapshot.NewKeys(other, [32]byte{1}) },
			[]string{"ERROR", "no identity here opens", "sealed to NEEDED"}},
		"a node that only writes": {func(_ *testing.T, r *rig) { r.keys = snapshot.NewKeys(nil, [32]byte{1}, r.identity.Recipient()) }, nil},
		"another store": {func(_ *testing.T, r *rig) { r.store = faultstore.New(memstore.New(0, time.Now)) },
			[]string{"ERROR", "the store has none", "mem://"}},
		"no catalogue": {emptied, []string{"WARN", "a catalogue was lost", "stasis snapshot import"}},
		"a first start": {func(t *testing.T, r *rig) {
			emptied(t, r)
			r.store = faultstore.New(memstore.New(0, time.Now))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			for range tried + 1 {
				r.saved(alice, filesystem)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			test.change(t, r)
			next := r.daemon(nil)
			var log bytes.Buffer
			next.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			if err := recovered(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			if err := next.Close(t.Context()); err != nil { // its work writes to the log too
				t.Fatal(err)
			}
			told := log.String()
			// The janitor may say that it was stopped; what to do is said of a mismatch alone.
			if len(test.want) == 0 && (strings.Contains(told, " do=") || strings.Contains(told, "belong together")) {
				t.Errorf("it says %s", told)
			}
			for _, want := range test.want {
				want = strings.ReplaceAll(want, "NEEDED", r.identity.Recipient().String())
				if !strings.Contains(told, want) {
					t.Errorf("no %q in %s", want, told)
				}
			}
		})
	}
}

// One snapshot that opens says that keys and store are right: the others are damaged
// each by itself, which a verification tells.
func TestOneThatOpensIsEnough(t *testing.T) {
	r := newRig(t, nil)
	r.saved(alice, filesystem)
	session, snap := r.saved(alice, filesystem)
	key, err := library.LocationOf("alice", session).DocumentKey(snap)
	if err == nil {
		err = r.store.Delete(t.Context(), key)
	}
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	r.Log = slog.New(slog.NewTextHandler(&log, nil))
	if r.tellMismatch(t.Context()); log.Len() > 0 {
		t.Errorf("it says %s", log.String())
	}
}

// The way back from a lost catalogue: an archive is imported as it lies in the store.
func TestAnArchiveOfTheStoreIsImported(t *testing.T) {
	r := newRig(t, nil)
	_, snap := r.saved(alice, filesystem)
	row, err := r.catalogue.Snapshot(t.Context(), snap)
	if err != nil {
		t.Fatal(err)
	}
	key, err := snapshot.ArchiveKey(row.ArchiveID)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := r.store.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	a, err := r.Import(t.Context(), alice, Import{Format: library.FormatStasis}, archive)
	if err = errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	r.create(alice, func(c *Create) { c.FromEnvironment = a.Snapshot.ID })
}
