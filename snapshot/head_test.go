package snapshot_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// tailSize is the size of a file after the head, in bytes: more than one chunk of age.
const tailSize = 300_000

// withHead is a draft whose archive has a head. The entries of the tail have names
// before and after those of the head.
func withHead() snapshot.Draft {
	noise := make([]byte, tailSize)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(noise) // it never fails
	return draft(1,
		snapshot.Entry{Name: "Default/b", Data: []byte("now")},
		snapshot.Entry{Name: "Default/a/1", Data: noise, InTail: true},
		snapshot.Entry{Name: "state.json", Data: []byte("{}")},
		snapshot.Entry{Name: "z/2", Data: []byte("later too"), InTail: true})
}

// tail returns a folder for the tail of an archive.
func tail(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return root, dir
}

// The files of the head are in place and belong to the caller, who may move them, before the
// rest of the archive is read. A caller that does not ask for the head gets all files at once.
func TestUnpackHead(t *testing.T) {
	v, _ := newVault(t)
	s := save(t, v, withHead())
	if s.Archive.Head.Entries != 2 || s.Archive.Entries != 4 {
		t.Fatalf("saved %+v", s.Archive)
	}
	into, dir := tail(t)
	dst, moved := filepath.Join(t.TempDir(), "new"), filepath.Join(t.TempDir(), "moved")
	got, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{Keep: []string{"state.json"}, Tail: into,
		Head: func(head snapshot.UnpackResult) error {
			if head.Entries != 2 || string(head.Kept["state.json"]) != "{}" {
				t.Errorf("the head: %+v", head)
			}
			if files := tree(t, dir); len(files) > 0 {
				t.Errorf("the rest was unpacked with the head: %v", files)
			}
			return os.Rename(dst, moved)
		}})
	if err != nil || got.Entries != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(map[string]string{"Default": "/", "Default/b": "now"}, tree(t, moved)); diff != "" {
		t.Errorf("the head (-want +got):\n%s", diff)
	}
	files := tree(t, dir)
	if len(files["Default/a/1"]) != tailSize || files["z/2"] != "later too" || len(files) != 5 {
		t.Errorf("the rest has %d files and folders", len(files))
	}
	whole := filepath.Join(t.TempDir(), "whole")
	if got, err := v.Unpack(t.Context(), s, whole, snapshot.UnpackOptions{}); err != nil || got.Entries != 4 || len(tree(t, whole)) != 7 {
		t.Errorf("as a whole: %+v, %v", got, err)
	}
	if err := v.Verify(t.Context(), s); err != nil {
		t.Error(err)
	}
	if opened, err := v.Open(t.Context(), place, s.ID); err != nil || opened.Archive.Head != s.Archive.Head {
		t.Errorf("opened %+v, %v", opened.Archive, err)
	}
}

// Nothing of a head is used that is not what was saved. Damage after the head ends the
// unpacking of the rest, and removes it.
func TestUnpackHeadDamaged(t *testing.T) {
	store := memstore.New(0, time.Now)
	v := vaultOf(store, snapshot.NewKeys(newIdentity(t), [32]byte{1}))
	s := save(t, v, withHead())
	for name, change := range map[string]func(*snapshot.Archive){
		"its hash":       func(a *snapshot.Archive) { a.Head.TarSHA256 = strings.Repeat("0", 64) },
		"its size":       func(a *snapshot.Archive) { a.Head.TarSize++ },
		"its entries":    func(a *snapshot.Archive) { a.Head.Entries++ },
		"no head at all": func(a *snapshot.Archive) { a.Head.Entries = 0 },
	} {
		other := s
		change(&other.Archive)
		into, _ := tail(t)
		_, err := v.Unpack(t.Context(), other, filepath.Join(t.TempDir(), "new"), snapshot.UnpackOptions{Tail: into,
			Head: func(snapshot.UnpackResult) error { t.Errorf("%s: the head was used", name); return nil }})
		if !fault.Is(err, fault.ArchiveDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		if err := v.Verify(t.Context(), other); !fault.Is(err, fault.ArchiveDamaged) {
			t.Errorf("%s: Verify: %v", name, err)
		}
	}
	key, err := snapshot.ArchiveKey(s.Archive.ID)
	if err != nil {
		t.Fatal(err)
	}
	key, good := stored(t, store, key, nil)
	storetest.Put(t, store, key, flip(good, len(good)-1))
	into, dir := tail(t)
	used := false
	_, err = v.Unpack(t.Context(), s, filepath.Join(t.TempDir(), "new"), snapshot.UnpackOptions{Tail: into,
		Head: func(snapshot.UnpackResult) error { used = true; return nil }})
	if !used || !fault.Is(err, fault.ArchiveDamaged) || len(tree(t, dir)) > 0 {
		t.Errorf("a damaged end: head used: %t, %d files left, %v", used, len(tree(t, dir)), err)
	}
}

// A caller who refuses the head keeps it, and gets nothing of the tail.
func TestUnpackHeadRefused(t *testing.T) {
	v, _ := newVault(t)
	s := save(t, v, withHead())
	for _, dst := range []string{filepath.Join(t.TempDir(), "new"), t.TempDir()} {
		into, dir := tail(t)
		refused := errors.New("refused")
		_, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{Tail: into, Head: func(snapshot.UnpackResult) error { return refused }})
		if !errors.Is(err, refused) || len(tree(t, dir)) > 0 || len(tree(t, dst)) != 3 {
			t.Errorf("%v; the head has %d files and folders", err, len(tree(t, dst)))
		}
	}
}

// Only a document of the second version has a head. The head is within the archive, and the
// document has a MAC.
func TestDocumentWithHead(t *testing.T) {
	v, store := newVault(t)
	s := save(t, v, withHead())
	key, err := place.DocumentKey(s.ID)
	_, good := stored(t, store, key, err)
	h := s.Archive.Head
	head := fmt.Sprintf(`"head":{"tar_sha256":%q,"tar_size":%d,"entries":%d}`, h.TarSHA256, h.TarSize, h.Entries)
	if !bytes.Contains(good, []byte(head)) || !bytes.Contains(good, []byte(`"schemaVersion":"1.1"`)) {
		t.Fatalf("%s", good)
	}
	for name, change := range map[string][2]string{
		"the first version with a head":     {`"schemaVersion":"1.1"`, `"schemaVersion":"1.0"`},
		"the second version without a head": {`,` + head, ``},
		"an empty head":                     {head, `"head":{}`},
		"a size of the whole archive":       {fmt.Sprint(`"tar_size":`, h.TarSize, `,"entries":2`), fmt.Sprint(`"tar_size":`, s.Archive.TarSize, `,"entries":2`)},
		"all entries":                       {`"entries":2}`, `"entries":4}`},
		"a bad hash":                        {h.TarSHA256, h.TarSHA256[1:]},
	} {
		body := bytes.Replace(good, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(body, good) {
			t.Fatalf("%s: nothing was changed", name)
		}
		if _, _, err := snapshot.ParseDocument(body, place, s.ID, snapshot.Keys{}); !fault.Is(err, fault.ArchiveDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := snapshot.ParseDocument(withoutMAC(good), place, s.ID, snapshot.Keys{}); !fault.Is(err, fault.ArchiveDamaged) {
		t.Errorf("a head without a MAC: %v", err)
	}
	if _, _, err := snapshot.ParseDocument(good, place, s.ID, snapshot.NewKeys(nil, [32]byte{1})); err != nil {
		t.Errorf("the document itself: %v", err)
	}
}
