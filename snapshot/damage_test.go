package snapshot_test

import (
	"bytes"
	"fmt"
	"io"
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

// A misplaced document, or one of another owner or time, is refused. A future
// schemaVersion is refused by name.
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
		"renamed":          {bytes.ReplaceAll(two, []byte(id(2)), []byte(id(1))), fault.ArchiveDamaged, "changed after it was written"},
		"renamed, unbound": {withoutMAC(bytes.ReplaceAll(two, []byte(id(2)), []byte(id(1)))), fault.ArchiveDamaged, "sealed part"},
		"another fact":     {bytes.Replace(one, []byte(`"cookies":3`), []byte(`"cookies":4`), 1), fault.ArchiveDamaged, "changed after it was written"},
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
	// The same document under the other owner's path.
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
	// A damaged document can be deleted.
	if err := v.Delete(t.Context(), other, id(1), storetest.NotInUse); err != nil {
		t.Errorf("Delete of a damaged document: %v", err)
	}
}

// withoutMAC returns a document as versions without MACs wrote it.
func withoutMAC(body []byte) []byte {
	return regexp.MustCompile(`"mac":"[0-9a-f]{64}",`).ReplaceAll(body, nil)
}

// A document from before there were MACs can be read.
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

// A damaged latest is reported, and the next save or delete repairs it.
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
	if err := v.Delete(t.Context(), place, id(2), storetest.NotInUse); err != nil {
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
