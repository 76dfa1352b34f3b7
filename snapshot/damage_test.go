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

// A document that is cut or changed never opens as something else than was
// saved, unless the change is in a value that binds nothing, a fact or a time.
func TestDamagedDocument(t *testing.T) {
	v, store := newVault(t)
	d := draft(1, snapshot.Entry{Name: "a", Data: []byte("a")})
	d.Facts = nil
	good := save(t, v, d)
	key, err := place.DocumentKey(id(1))
	key, body := stored(t, store, key, err)
	opens := 0
	for at := range body {
		for _, changed := range [][]byte{body[:at], flip(body, at)} {
			storetest.Put(t, store, key, changed)
			s, err := v.Open(t.Context(), place, id(1))
			switch {
			case err == nil:
				opens++
				s.CreatedAt, s.Mode, s.Recipients = good.CreatedAt, good.Mode, good.Recipients
				s.Archive.StoredSize = good.Archive.StoredSize // changes when the header is written anew
				if diff := cmp.Diff(good, s); diff != "" && v.Verify(t.Context(), s) == nil {
					t.Errorf("byte %d: it opens as (-saved +opened):\n%s", at, diff)
				}
			case !fault.Is(err, fault.ArchiveDamaged) && !fault.Is(err, fault.Unsupported):
				t.Errorf("byte %d: %v", at, err)
			case !strings.Contains(fault.MessageOf(err), id(1)):
				t.Errorf("byte %d: the message names no snapshot: %s", at, fault.MessageOf(err))
			}
		}
	}
	if opens > len(body)/2 {
		t.Errorf("%d of %d changes were accepted", opens, 2*len(body))
	}
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
		"renamed":          {bytes.ReplaceAll(two, []byte(id(2)), []byte(id(1))), fault.ArchiveDamaged, "sealed part"},
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

// What is not an ID never becomes a path.
func TestBadIDs(t *testing.T) {
	v, _ := newVault(t)
	for _, bad := range []string{"", "..", "../x", "A", "latest", strings.Repeat("0", 36), id(1) + "/"} {
		if _, err := v.Open(t.Context(), place, bad); !fault.Is(err, fault.InvalidField) {
			t.Errorf("Open %q: %v", bad, err)
		}
	}
	for _, bad := range []snapshot.Location{
		{}, {Owner: place.Owner, Session: "../x", Scope: "agent", ScopeID: "browser"},
		{Owner: "..", Session: "s", Scope: "agent", ScopeID: "browser"},
		{Owner: place.Owner, Session: "s", Scope: "other", ScopeID: "browser"},
		{Owner: place.Owner, Session: "s", Scope: "agent", ScopeID: strings.Repeat("a", 129)},
		{Owner: place.Owner, Session: "s\n", Scope: "agent", ScopeID: "b"},
	} {
		d := draft(1)
		d.Location = bad
		if _, err := v.Save(t.Context(), d); !fault.Is(err, fault.InvalidField) {
			t.Errorf("Save to %+v: %v", bad, err)
		}
	}
}
