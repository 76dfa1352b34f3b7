package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/storetest"
)

func stored(t testing.TB, store snapshot.Store, key snapshot.Key, err error) (snapshot.Key, []byte) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	r, err := store.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return key, body
}

// An archive that is cut anywhere, or has a bit changed anywhere, or bytes
// added, is archive_damaged naming the snapshot, for every way of reading it,
// and leaves the folder as it was.
func TestDamagedArchive(t *testing.T) {
	v, store := newVault(t)
	random := rand.NewChaCha8([32]byte{})
	noise := make([]byte, 150_000) // more than two chunks of age
	if _, err := random.Read(noise); err != nil {
		t.Fatal(err)
	}
	s := save(t, v, draft(1, snapshot.Entry{Name: "d/a", Data: noise}, snapshot.Entry{Name: "d/b", Data: []byte("b")}))
	key, err := snapshot.ArchiveKey(s.Archive.ID)
	key, good := stored(t, store, key, err)

	bad := map[string][]byte{"empty": {}, "longer": append(bytes.Clone(good), 0), "twice": append(bytes.Clone(good), good...)}
	for at := range 260 { // the header, nonce and first bytes densely
		bad[fmt.Sprintf("flip %d", at)] = flip(good, at)
	}
	for i := range 60 {
		at := i * len(good) / 60
		bad[fmt.Sprintf("cut %d", at)] = good[:at]
		bad[fmt.Sprintf("flip %d", at)] = flip(good, at)
	}
	for at := len(good) - 20; at < len(good); at++ {
		bad[fmt.Sprintf("cut %d", at)] = good[:at]
		bad[fmt.Sprintf("flip %d", at)] = flip(good, at)
	}
	dst := t.TempDir()
	if err := os.WriteFile(filepath.Join(dst, "mine"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dst)
	for name, body := range bad {
		storetest.Put(t, store, key, body)
		_, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{})
		if !fault.Is(err, fault.ArchiveDamaged) || !strings.Contains(fault.MessageOf(err), s.ID) {
			t.Errorf("%s: Unpack: %v, want archive_damaged naming the snapshot", name, err)
		}
		if diff := cmp.Diff(before, tree(t, dst)); diff != "" {
			t.Fatalf("%s: the folder changed (-before +after):\n%s", name, diff)
		}
		if err := v.Verify(t.Context(), s); !fault.Is(err, fault.ArchiveDamaged) {
			t.Errorf("%s: Verify: %v", name, err)
		}
		if err := readAll(t, v, s); !fault.Is(err, fault.ArchiveDamaged) {
			t.Errorf("%s: OpenArchive: %v", name, err)
		}
	}
	if err := store.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(dst, "fresh")
	if _, err := v.Unpack(t.Context(), s, fresh, snapshot.UnpackOptions{}); !fault.Is(err, fault.ArchiveDamaged) {
		t.Errorf("missing: %v", err)
	}
	if _, err := os.Lstat(fresh); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was left: %v", err)
	}
	storetest.Put(t, store, key, good)
	if _, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{}); err != nil {
		t.Errorf("the good archive: %v", err)
	}
}

func readAll(t *testing.T, v *snapshot.Vault, s snapshot.Snapshot) error {
	t.Helper()
	r, err := v.OpenArchive(t.Context(), s)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, r)
	return errors.Join(err, r.Close())
}

func flip(body []byte, at int) []byte {
	body = bytes.Clone(body)
	body[at] ^= 1 << (at % 8)
	return body
}

// A document in another's place, from another owner or time, is refused; so
// is a future schema, by name.
func TestSwappedDocument(t *testing.T) {
	v, store := newVault(t)
	save(t, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("a")}))
	save(t, v, draft(2, snapshot.Entry{Name: "a", Data: []byte("b")}))
	first, err := place.DocumentKey(id(1))
	first, one := stored(t, store, first, err)
	second, err := place.DocumentKey(id(2))
	_, two := stored(t, store, second, err)
	foreign := strings.Repeat("f", 32)
	tests := map[string]struct {
		body []byte
		code fault.Code
		says string
	}{
		"another snapshot": {two, fault.ArchiveDamaged, "belongs to another"},
		"another owner":    {bytes.ReplaceAll(one, []byte(place.Owner), []byte(foreign)), fault.ArchiveDamaged, "belongs to another"},
		"renamed":          {bytes.ReplaceAll(two, []byte(id(2)), []byte(id(1))), fault.ArchiveDamaged, "not as it was written"},
		"renamed, unbound": {withoutMAC(bytes.ReplaceAll(two, []byte(id(2)), []byte(id(1)))), fault.ArchiveDamaged, "sealed part"},
		"another fact":     {bytes.Replace(one, []byte(`"cookies":3`), []byte(`"cookies":4`), 1), fault.ArchiveDamaged, "not as it was written"},
		"future":           {bytes.Replace(one, []byte(`"1.0"`), []byte(`"9.7"`), 1), fault.Unsupported, `"9.7"`},
		"twice":            {bytes.Replace(one, []byte(`"scope":`), []byte(`"Scope":"agent","scope":`), 1), fault.ArchiveDamaged, "ambiguous"},
		"unknown":          {bytes.Replace(one, []byte(`"scope":`), []byte(`"x":1,"scope":`), 1), fault.ArchiveDamaged, "shape"},
		"trailing":         {append(bytes.Clone(one), "{}"...), fault.ArchiveDamaged, "shape"},
		"huge":             {bytes.Repeat([]byte(" "), 9<<20), fault.ArchiveDamaged, "too large"},
	}
	for name, test := range tests {
		storetest.Put(t, store, first, test.body)
		_, err := v.Open(t.Context(), place, id(1))
		if !fault.Is(err, test.code) || !strings.Contains(fault.MessageOf(err), test.says) {
			t.Errorf("%s: %v, want %s saying %q", name, err, test.code, test.says)
		}
	}
	// The same document under the other owner's own path.
	other := place
	other.Owner = foreign
	key, err := other.DocumentKey(id(1))
	if err != nil {
		t.Fatal(err)
	}
	storetest.Put(t, store, key, bytes.ReplaceAll(one, []byte(place.Owner), []byte(foreign)))
	if _, err := v.Open(t.Context(), other, id(1)); !fault.Is(err, fault.ArchiveDamaged) {
		t.Errorf("a document moved to another owner: %v", err)
	}
	// A damaged one can be deleted.
	if err := v.Delete(t.Context(), other, id(1), true); err != nil {
		t.Errorf("Delete of a damaged document: %v", err)
	}
}

// withoutMAC is a document as it was written before documents had one.
func withoutMAC(body []byte) []byte {
	return regexp.MustCompile(`"mac":"[0-9a-f]{64}",`).ReplaceAll(body, nil)
}

// A document that was written before there were MACs is read.
func TestDocumentWithoutMAC(t *testing.T) {
	v, store := newVault(t)
	saved := save(t, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("a")}))
	key, err := place.DocumentKey(id(1))
	key, body := stored(t, store, key, err)
	older := withoutMAC(body)
	if bytes.Equal(body, older) {
		t.Fatal("the document has no MAC")
	}
	storetest.Put(t, store, key, older)
	if s, err := v.Open(t.Context(), place, id(1)); err != nil || !cmp.Equal(saved, s) {
		t.Errorf("opened %+v, %v", s, err)
	}
}

// A latest that is damaged says so, and the next save or delete mends it.
func TestDamagedLatest(t *testing.T) {
	v, store := newVault(t)
	for n := range 3 {
		save(t, v, draft(n, snapshot.Entry{Name: "a", Data: fmt.Append(nil, n)}))
	}
	key, err := place.LatestKey()
	if err != nil {
		t.Fatal(err)
	}
	storetest.Put(t, store, key, []byte(`{"schemaVersion":"1.0"`))
	if _, err := v.Latest(t.Context(), place); !fault.Is(err, fault.ArchiveDamaged) {
		t.Errorf("damaged: %v", err)
	}
	if err := v.Delete(t.Context(), place, id(2), true); err != nil {
		t.Fatal(err)
	}
	if s, err := v.Latest(t.Context(), place); err != nil || s.ID != id(1) {
		t.Errorf("after a delete: %s, %v", s.ID, err)
	}
	storetest.Put(t, store, key, nil)
	save(t, v, draft(4, snapshot.Entry{Name: "a", Data: []byte("new")}))
	if s, err := v.Latest(t.Context(), place); err != nil || s.ID != id(4) {
		t.Errorf("after a save: %s, %v", s.ID, err)
	}
}

// What a newer version wrote is refused by name, and neither written over nor
// deleted.
func TestFutureVersion(t *testing.T) {
	for name, key := range map[string]func() (snapshot.Key, error){
		"manifest": place.ManifestKey,
		"document": func() (snapshot.Key, error) { return place.DocumentKey(id(1)) },
		"latest":   place.LatestKey,
	} {
		v, store := newVault(t)
		save(t, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("a")}))
		k, err := key()
		k, body := stored(t, store, k, err)
		future := bytes.Replace(body, []byte(`"1.0"`), []byte(`"2.3"`), 1)
		storetest.Put(t, store, k, future)
		calls := map[string]error{}
		switch name {
		case "manifest":
			_, calls["Save"] = v.Save(t.Context(), draft(2, snapshot.Entry{Name: "a", Data: []byte("b")}))
		case "document":
			_, calls["Open"] = v.Open(t.Context(), place, id(1))
			calls["Delete"] = v.Delete(t.Context(), place, id(1), true)
		case "latest":
			_, calls["Latest"] = v.Latest(t.Context(), place)
		}
		for call, err := range calls {
			if !fault.Is(err, fault.Unsupported) || !strings.Contains(fault.MessageOf(err), `"2.3"`) {
				t.Errorf("%s: %s: %v, want unsupported naming the version", name, call, err)
			}
		}
		if _, now := stored(t, store, k, nil); !bytes.Equal(now, future) {
			t.Errorf("%s: it became %q", name, now)
		}
		if names, err := store.List(t.Context(), snapshot.ArchiveFolder(), 9, ""); err != nil || len(names) != 1 {
			t.Errorf("%s: archives %q, %v", name, names, err)
		}
	}
}

// What is not an ID never becomes a path, at any entrance and in any place of it.
func TestBadIDs(t *testing.T) {
	v, _ := newVault(t)
	for _, bad := range []string{
		"", ".", "..", "../x", "a/b", "/", "A", "aA", "é", "a b", "s\n", "a\x00", "latest.json", "*", strings.Repeat("a", 300), strings.Repeat("0", 129),
	} {
		for name, in := range map[string]snapshot.Location{
			"owner":    {Owner: bad, Session: place.Session, Scope: place.Scope, ScopeID: place.ScopeID},
			"session":  {Owner: place.Owner, Session: bad, Scope: place.Scope, ScopeID: place.ScopeID},
			"scope":    {Owner: place.Owner, Session: place.Session, Scope: bad, ScopeID: place.ScopeID},
			"scope ID": {Owner: place.Owner, Session: place.Session, Scope: place.Scope, ScopeID: bad},
		} {
			d := draft(1)
			d.Location = in
			_, saved := v.Save(t.Context(), d)
			_, opened := v.Open(t.Context(), in, id(1))
			_, latest := v.Latest(t.Context(), in)
			_, _, listed := v.List(t.Context(), in, 0, "")
			_, manifest := in.ManifestKey()
			for call, err := range map[string]error{
				"Save": saved, "Open": opened, "Latest": latest, "List": listed, "Delete": v.Delete(t.Context(), in, id(1), true),
				"ManifestKey": manifest, "Check": in.Check(),
			} {
				if !fault.Is(err, fault.InvalidField) || len(bad) > 3 && strings.Contains(fault.MessageOf(err), bad) {
					t.Errorf("%s %q: %s: %v", name, bad, call, err)
				}
			}
		}
		d := draft(1)
		d.ID = bad
		_, saved := v.Save(t.Context(), d)
		_, opened := v.Open(t.Context(), place, bad)
		_, archive := snapshot.ArchiveKey(bad)
		errs := map[string]error{"Save": saved, "Open": opened, "ArchiveKey": archive, "Delete": v.Delete(t.Context(), place, bad, true)}
		if bad != "" { // lists from the start
			_, _, errs["List"] = v.List(t.Context(), place, 0, bad)
		}
		for call, err := range errs {
			if !fault.Is(err, fault.InvalidField) {
				t.Errorf("%s of %q: %v", call, bad, err)
			}
		}
	}
	for _, bad := range []string{strings.Repeat("0", 36), id(1) + "/", strings.ToUpper("01900000-0000-7000-8000-00000000000a"), id(1)[1:]} {
		if _, err := v.Open(t.Context(), place, bad); !fault.Is(err, fault.InvalidField) {
			t.Errorf("Open %q: %v", bad, err)
		}
	}
}
