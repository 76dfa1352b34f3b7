package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
)

// RunCopy copies from stores that from creates to stores that to creates. It tries
// different contents of the destination, and a fault at every nth call of either store.
// Under [Torture] it tries a fault at each call.
func RunCopy(t *testing.T, from, to Open, every int) {
	if Torture() {
		every = 1
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, *copyFixture)
	}{
		{"complete", copyWhole}, {"other objects", copyOther}, {"newer objects", copyNewer}, {"damaged source", copyDamaged}, {"cancelled", copyCancelled},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newCopyFixture(t, from(t), to(t))) })
	}
	for _, mode := range []faultstore.Mode{faultstore.Refuse, faultstore.Lose, faultstore.Dead} {
		t.Run(fmt.Sprintf("faults %d", mode), func(t *testing.T) { copyFaults(t, from, to, mode, every) })
	}
}

// copyFixture is a source and a destination. The source has three snapshots in two
// locations, two of which share an archive. It also has an agent document and an archive
// that no document names.
type copyFixture struct {
	from, to snapshot.Store
	keys     snapshot.Keys
	all      []snapshot.Key // the keys to copy
}

func newCopyFixture(t *testing.T, from, to snapshot.Store) *copyFixture {
	t.Helper()
	c := &copyFixture{from: from, to: to, keys: testKeys(t)}
	t.Cleanup(func() {
		if err := errors.Join(from.Close(), to.Close()); err != nil {
			t.Error(err)
		}
	})
	v := snapshot.NewVault(from, c.keys, snapshot.Options{Now: time.Now})
	key := must[snapshot.Key](t)
	for n, session := range []string{"s-1", "s-1", "s-2"} {
		d := draft(n + 1)
		d.Location.Session = session
		if n == 2 {
			d.Entries = draft(1).Entries
		}
		s := must[snapshot.Snapshot](t)(v.Save(t.Context(), d))
		c.all = append(c.all, key(snapshot.ArchiveKey(s.Archive.ID)), key(d.Location.DocumentKey(s.ID)),
			key(d.Location.LatestKey()), key(d.Location.ManifestKey()))
	}
	desk := place
	desk.ScopeID = "desk"
	for _, at := range []snapshot.Key{key(desk.DocumentKey(id(9))), key(desk.LatestKey())} {
		Put(t, from, at, []byte(`{"scope":"agent","schemaVersion":"1.0","createdAt":"2026-11-22T04:34:40.908Z","data":{},"appData":{}}`))
		c.all = append(c.all, at)
	}
	Put(t, from, archiveKey(t, 1), []byte("nobody's"))
	return c
}

// run copies and returns the findings.
func (c *copyFixture) run(t *testing.T, from, to snapshot.Store) (out snapshot.CopyResult, found []string, err error) {
	t.Helper()
	out, err = snapshot.Copy(t.Context(), from, to, snapshot.CopyOptions{
		Found: func(f snapshot.Finding) error { found = append(found, string(f.Kind)+" "+f.Key); return nil }})
	return out, found, err
}

// complete checks that the destination has everything, and nothing else.
func (c *copyFixture) complete(t *testing.T) {
	t.Helper()
	for _, key := range c.all {
		if diff := cmp.Diff(string(content(t, c.from, key)), string(content(t, c.to, key))); diff != "" {
			t.Errorf("%s differs (-source +copy):\n%s", key, diff)
		}
	}
	if content(t, c.to, archiveKey(t, 1)) != nil {
		t.Error("an archive that no document names was copied")
	}
	if kinds := c.check(t); len(kinds) > 0 {
		t.Errorf("a check of the copy finds %q", kinds)
	}
}

// check returns what is wrong with the destination.
func (c *copyFixture) check(t *testing.T) (kinds []snapshot.Kind) {
	t.Helper()
	v := snapshot.NewVault(c.to, c.keys, snapshot.Options{Now: time.Now})
	_, err := v.Check(t.Context(), snapshot.CheckOptions{ReadData: true},
		func(f snapshot.Finding) error { kinds = append(kinds, f.Kind); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

func copyWhole(t *testing.T, c *copyFixture) {
	for _, want := range []snapshot.CopyResult{{Archives: 2, Documents: 4}, {SameArchives: 2, SameDocuments: 4}} {
		out, found, err := c.run(t, c.from, c.to)
		if err != nil || len(found) > 0 {
			t.Fatal(found, err)
		}
		if want.Archives > 0 {
			want.Bytes = int64(len(content(t, c.from, c.all[0])) + len(content(t, c.from, c.all[4])))
		}
		if diff := cmp.Diff(want, out); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
		c.complete(t)
	}
}

// Objects damaged in the source are not copied, and everything else is.
func copyDamaged(t *testing.T, c *copyFixture) {
	Put(t, c.from, c.all[0], flipLast(content(t, c.from, c.all[0])))
	Put(t, c.from, c.all[5], []byte("{}"))
	_, found, err := c.run(t, c.from, c.to)
	want := []string{"archive_damaged " + c.all[0].String(), "version_unknown " + c.all[5].String(), "latest_damaged " + c.all[2].String(),
		"archive_damaged " + c.all[0].String(), "latest_damaged " + c.all[10].String()}
	if diff := cmp.Diff(want, found); err != nil || diff != "" {
		t.Errorf("reported (-want +got):\n%s\n%v", diff, err)
	}
	for _, key := range []snapshot.Key{c.all[0], c.all[1], c.all[5], c.all[9]} {
		if content(t, c.to, key) != nil {
			t.Errorf("%s was copied", key)
		}
	}
	wantContent(t, c.to, c.all[12], string(content(t, c.from, c.all[12])))
}

// copyCancelled cancels a copy in the middle of an archive.
func copyCancelled(t *testing.T, c *copyFixture) {
	ctx, cancel := context.WithCancel(t.Context())
	out, err := snapshot.Copy(ctx, c.from, c.to, snapshot.CopyOptions{
		Found:    func(f snapshot.Finding) error { t.Errorf("reported %+v", f); return nil },
		Progress: func(snapshot.CopyResult) { cancel() },
	})
	if !errors.Is(err, context.Canceled) || out.Documents > 0 {
		t.Errorf("%+v, %v", out, err)
	}
	if _, found, err := c.run(t, c.from, c.to); err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	c.complete(t)
}

// copyFaults makes one call after the other fail, first in the source and then in the
// destination. After each failure the destination is consistent: what it has can be
// restored. The next copy completes it.
func copyFaults(t *testing.T, from, to Open, mode faultstore.Mode, every int) {
	c := newCopyFixture(t, from(t), to(t))
	for side := range 2 {
		for n := 1 + int(mode)%every; ; n += every {
			stores := []*faultstore.Store{faultstore.New(c.from), faultstore.New(c.to)}
			boom := fault.New(fault.StoreFull, "test", "planned")
			stores[side].FailAt(n, mode, boom)
			_, found, err := c.run(t, stores[0], stores[1])
			if stores[side].Calls() < n {
				break
			}
			if len(found) > 0 || err != nil && !errors.Is(err, error(boom)) {
				t.Errorf("store %d, call %d: reported %q, %v", side, n, found, err)
			}
			for _, kind := range c.check(t) {
				begun := []snapshot.Kind{snapshot.LatestMissing, snapshot.ManifestMissing, snapshot.ArchiveOrphaned}
				if !slices.Contains(begun, kind) {
					t.Errorf("store %d, call %d: the copy has %s", side, n, kind)
				}
			}
			if _, found, err := c.run(t, c.from, c.to); err != nil || len(found) > 0 {
				t.Fatalf("store %d, call %d: the next copy: %q, %v", side, n, found, err)
			}
			c.complete(t)
			for _, key := range c.all {
				if err := c.to.Delete(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
