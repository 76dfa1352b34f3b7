package storetest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// Torture reports whether tests try everything (make torture), and not only what takes
// seconds (make test).
func Torture() bool { return os.Getenv("STASIS_TORTURE") != "" }

// Long reports whether tests run in their long form (make test-long).
func Long() bool { return os.Getenv("STASIS_LONG") != "" }

// Every returns n for the short form of a test that makes every nth call fail, and long for
// its long form.
func Every(n, long int) int {
	if Long() {
		return long
	}
	return n
}

// everyCall reports whether [RunVault], [RunCheck] and [RunDocuments] make each call of a
// store fail, and not only every nth.
func everyCall() bool { return Long() || Torture() }

// RunDamage flips a bit of, and cuts, each object of a snapshot at every nth byte. Under
// [Torture] it does so at each byte, with several bits. Each read must then fail with the
// right code, or return exactly what was saved. Other objects are read as before.
func RunDamage(t *testing.T, open Open, every, bits int) {
	flips := 1
	if Torture() {
		every, flips = 1, bits
	}
	d := newDamageFixture(t, open(t))
	key := must[snapshot.Key](t)
	for name, at := range map[string]snapshot.Key{
		"archive": key(snapshot.ArchiveKey(d.target.Archive.ID)), "document": key(place.DocumentKey(d.target.ID)),
		"latest": key(place.LatestKey()), "manifest": key(place.ManifestKey()),
	} {
		t.Run(name, func(t *testing.T) {
			good, changes := content(t, d.store, at), 0
			for n := 0; n < len(good); n += every {
				for bit := range flips {
					bad := bytes.Clone(good)
					bad[n] ^= 1 << ((n/every + bit) % 8)
					Put(t, d.store, at, bad)
					d.check(t, name, n)
				}
				Put(t, d.store, at, good[:n])
				d.check(t, name, n)
				changes += flips + 1
			}
			Put(t, d.store, at, good)
			d.check(t, "", 0)
			t.Logf("%d changes of %d bytes", changes, len(good))
		})
	}
	if err := d.store.Close(); err != nil {
		t.Error(err)
	}
}

// damageFixture is a store with an older snapshot, a target snapshot, which is the
// location's latest, and a snapshot in another location.
type damageFixture struct {
	store                 snapshot.Store
	vault                 *snapshot.Vault
	older, target, beside snapshot.Snapshot
	out                   string // the folder for unpacked archives
}

func newDamageFixture(t *testing.T, store snapshot.Store) *damageFixture {
	t.Helper()
	now := func() time.Time { return time.Unix(1_800_000_000, 0) }
	d := &damageFixture{store: store, out: t.TempDir(), vault: snapshot.NewVault(store, testKeys(t), snapshot.Options{Now: now})}
	save := func(n int, in string) snapshot.Snapshot {
		what := draft(n)
		what.Location.Session = in
		what.Facts = map[string]any{"cookies": 3.0}
		return must[snapshot.Snapshot](t)(d.vault.Save(t.Context(), what))
	}
	d.older, d.target, d.beside = save(1, place.Session), save(2, place.Session), save(3, "s-2")
	return d
}

// check reads everything while the named object is damaged at byte n. damaged is "" if
// none is.
func (d *damageFixture) check(t *testing.T, damaged string, n int) {
	t.Helper()
	s, err := d.vault.Open(t.Context(), place, d.target.ID)
	d.checkRead(t, damaged, n, "document", s, err)
	s, err = d.vault.Latest(t.Context(), place)
	d.checkRead(t, damaged, n, "latest", s, err)

	err = d.vault.Verify(t.Context(), d.target)
	d.checkRead(t, damaged, n, "archive", d.target, err)
	dst := filepath.Join(d.out, "target")
	got, err := d.vault.Unpack(t.Context(), d.target, dst, snapshot.UnpackOptions{Keep: []string{"state.json"}})
	d.checkRead(t, damaged, n, "archive", d.target, err)
	if err == nil {
		if string(got.Kept["state.json"]) != "state 2" {
			t.Errorf("%s, byte %d: unpacked %q", damaged, n, got.Kept)
		}
		err = os.Remove(dst)
	} else if _, err = os.Lstat(dst); os.IsNotExist(err) {
		err = nil
	}
	if err != nil {
		t.Fatalf("%s, byte %d: what was unpacked to: %v", damaged, n, err)
	}

	ids, _, err := d.vault.List(t.Context(), place, 0, "")
	if err != nil || !cmp.Equal(ids, []string{d.older.ID, d.target.ID}) {
		t.Errorf("%s, byte %d: List: %q, %v", damaged, n, ids, err)
	}
	for _, want := range []snapshot.Snapshot{d.older, d.beside} {
		s, err := d.vault.Open(t.Context(), want.Location, want.ID)
		if err == nil {
			err = d.vault.Verify(t.Context(), s)
		}
		if diff := cmp.Diff(want, s); diff != "" || err != nil {
			t.Errorf("%s, byte %d: another snapshot: %v\n%s", damaged, n, err, diff)
		}
	}
}

// checkRead checks the result of reading one object. Only a read of the damaged object may
// fail. A read of a damaged archive must fail.
func (d *damageFixture) checkRead(t *testing.T, damaged string, n int, read string, s snapshot.Snapshot, err error) {
	t.Helper()
	switch {
	case err == nil:
		if damaged == "archive" && read == damaged {
			t.Errorf("%s, byte %d: it was read", damaged, n)
		}
		if diff := cmp.Diff(d.target, s); diff != "" {
			t.Errorf("%s, byte %d: read as (-saved +read):\n%s", damaged, n, diff)
		}
	case read != damaged:
		t.Errorf("%s, byte %d: the %s: %v", damaged, n, read, err)
	case !fault.Is(err, fault.ArchiveDamaged) && (read == "archive" || !fault.Is(err, fault.Unsupported)):
		t.Errorf("%s, byte %d: %v, want archive_damaged", damaged, n, err)
	case read != "latest" && !strings.Contains(fault.MessageOf(err), d.target.ID):
		t.Errorf("%s, byte %d: the message names no snapshot: %s", damaged, n, fault.MessageOf(err))
	}
}
