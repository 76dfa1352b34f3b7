package snapshot_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

// No document makes the parser panic or fail without a code, and one that is
// accepted is what it was asked for.
func FuzzParseDocument(f *testing.F) {
	v, store := newVault(f)
	save(f, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("a")}))
	key, err := place.DocumentKey(id(1))
	_, body := stored(f, store, key, err)
	f.Add(body)
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"schemaVersion":"1.0","data":{"facts":{"a":[1,{"b":null}]}}}`))
	f.Add(bytes.Repeat([]byte("["), 20_000))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := snapshot.ParseDocument(body, place, id(1))
		if err != nil {
			if !fault.Is(err, fault.ArchiveDamaged) && !fault.Is(err, fault.Unsupported) {
				t.Errorf("an error without its code: %v", err)
			}
			return
		}
		if s.ID != id(1) || s.Location != place || !json.Valid(body) {
			t.Errorf("accepted as %+v", s)
		}
	})
}

// Whatever tar an archive holds, nothing is written outside the folder, only
// files and folders within it, and after an error nothing at all.
func FuzzUnpack(f *testing.F) {
	f.Add(tarOf(f, file("a"), file("b/c")), 2)
	f.Add(tarOf(f, file("../a")), 1)
	f.Add(tarOf(f, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/etc"}, file("l/a")), 2)
	f.Add(tarOf(f, file(strings.Repeat("long/", 60)+"a")), 1)
	f.Fuzz(func(t *testing.T, body []byte, entries int) {
		if len(body) == 0 || len(body) > 1<<20 {
			return
		}
		v, _ := newVault(t)
		s := v.Plant(t, place, id(1), body, entries)
		around := t.TempDir()
		dst := filepath.Join(around, "dst")
		_, err := v.Unpack(t.Context(), s, dst, snapshot.UnpackOptions{Limits: snapshot.Limits{Entries: 100, Bytes: 1 << 20}})
		names, readErr := os.ReadDir(around)
		if err != nil {
			if !fault.Is(err, fault.ArchiveDamaged) || readErr != nil || len(names) > 0 {
				t.Errorf("after %v there is %v (%v)", err, names, readErr)
			}
			return
		}
		if len(names) != 1 || names[0].Name() != "dst" {
			t.Errorf("outside the folder: %v", names)
		}
		walked := filepath.WalkDir(dst, func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.Type().IsRegular() && !d.IsDir() {
				err = errors.New("neither file nor folder")
			}
			return err
		})
		if walked != nil {
			t.Error(walked)
		}
	})
}
