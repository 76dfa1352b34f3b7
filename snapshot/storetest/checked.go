package storetest

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/snapshot"
)

// checkFixture is a store for a test to damage. One location has two snapshots, and the
// second is latest.
type checkFixture struct {
	*testing.T
	store         snapshot.Store
	vault         *snapshot.Vault
	first, second snapshot.Snapshot
}

func newCheckFixture(t *testing.T, store snapshot.Store, keys snapshot.Keys) *checkFixture {
	t.Helper()
	c := &checkFixture{T: t, store: store, vault: snapshot.NewVault(store, keys, snapshot.Options{Now: time.Now})}
	c.first = must[snapshot.Snapshot](t)(c.vault.Save(t.Context(), draft(1)))
	c.second = must[snapshot.Snapshot](t)(c.vault.Save(t.Context(), draft(2)))
	return c
}

func (c *checkFixture) archive(s snapshot.Snapshot) snapshot.Key {
	return must[snapshot.Key](c.T)(snapshot.ArchiveKey(s.Archive.ID))
}

func (c *checkFixture) document(s snapshot.Snapshot) snapshot.Key {
	return must[snapshot.Key](c.T)(place.DocumentKey(s.ID))
}

func (c *checkFixture) latest() snapshot.Key { return must[snapshot.Key](c.T)(place.LatestKey()) }

func (c *checkFixture) manifest() snapshot.Key { return must[snapshot.Key](c.T)(place.ManifestKey()) }

func (c *checkFixture) bytes(key snapshot.Key) func([]byte) []byte {
	return func([]byte) []byte { return content(c.T, c.store, key) }
}

func (c *checkFixture) remove(key snapshot.Key) {
	c.Helper()
	if err := c.store.Delete(c.Context(), key); err != nil {
		c.Fatal(err)
	}
}

func (c *checkFixture) change(key snapshot.Key, to func([]byte) []byte) {
	c.Helper()
	old := content(c.T, c.store, key)
	if !must[bool](c.T)(c.store.Swap(c.Context(), key, old, to(bytes.Clone(old)))) {
		c.Fatalf("%s was not changed", key)
	}
}

func flipLast(b []byte) []byte {
	b[len(b)-3] ^= 1
	return b
}

func newer(b []byte) []byte {
	return bytes.Replace(b, []byte(`"schemaVersion":"1.0"`), []byte(`"schemaVersion":"2.0"`), 1)
}

func (c *checkFixture) objects() map[string]string {
	all := map[string]string{}
	for _, s := range []snapshot.Snapshot{c.first, c.second} {
		for _, key := range []snapshot.Key{c.archive(s), c.document(s)} {
			all[key.String()] = string(content(c.T, c.store, key))
		}
	}
	for _, key := range []snapshot.Key{c.latest(), c.manifest()} {
		all[key.String()] = string(content(c.T, c.store, key))
	}
	return all
}

func (c *checkFixture) check(o snapshot.CheckOptions) (all []snapshot.Finding) {
	c.Helper()
	_, err := c.vault.Check(c.Context(), o, func(f snapshot.Finding) error { all = append(all, f); return nil })
	if err != nil {
		c.Fatal(err)
	}
	return all
}

// words shortens findings to the kind, the number of the snapshot, and whether a repair
// fixes it.
func (c *checkFixture) words(all []snapshot.Finding) (words []string) {
	for _, f := range all {
		w := string(f.Kind)
		if f.Snapshot != "" {
			w += " " + strings.TrimLeft(f.Snapshot[len(f.Snapshot)-12:], "0")
		}
		if f.Repairable {
			w += " repairable"
		}
		if f.What == "" || f.Key == "" {
			c.Errorf("%s has no text or no object: %+v", w, f)
		}
		words = append(words, w)
	}
	return words
}
