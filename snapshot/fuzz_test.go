package snapshot_test

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// No document makes the parser panic or fail without a code. An accepted document is the
// requested one, and is the same after encoding and parsing again.
func FuzzParseDocument(f *testing.F) {
	keys := snapshot.NewKeys(newIdentity(f), [32]byte{1})
	store := memstore.New(0, time.Now)
	v := vaultOf(store, keys)
	save(f, v, draft(1, snapshot.Entry{Name: "a", Data: []byte("a")}))
	key, err := place.DocumentKey(id(1))
	_, body := stored(f, store, key, err)
	f.Add(body)
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"schemaVersion":"1.0","data":{"facts":{"a":[1,{"b":null}]}}}`))
	f.Add(bytes.Repeat([]byte("["), 20_000))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, again, err := snapshot.ParseDocument(body, place, id(1), keys)
		if err != nil {
			if !fault.Is(err, fault.ArchiveDamaged) && !fault.Is(err, fault.Unsupported) {
				t.Errorf("an error without its code: %v", err)
			}
			return
		}
		if s.ID != id(1) || s.Location != place || !json.Valid(body) {
			t.Errorf("accepted as %+v", s)
		}
		same, _, err := snapshot.ParseDocument(again, place, id(1), keys)
		if diff := cmp.Diff(s, same, cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("encoded again: %v\n%s", err, diff)
		}
	})
}

// Reading any tar.zst ends, within its limit.
func FuzzExtract(f *testing.F) {
	zw, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, tar := range [][]byte{nil, tarOf(f, file("a"), file("b/c")), tarOf(f, file(strings.Repeat("long/", 60)+"a")), make([]byte, 1<<20)} {
		f.Add(zw.EncodeAll(tar, nil))
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		const most = 1 << 20
		entries, size, err := snapshot.Extract(t.Context(), packed, most)
		if err != nil {
			return
		}
		if size > most || int64(entries)*512 > size {
			t.Errorf("%d entries in %d bytes", entries, size)
		}
		if e, s, err := snapshot.Extract(t.Context(), packed, most); e != entries || s != size || err != nil {
			t.Errorf("read again: %d, %d, %v; it was %d, %d", e, s, err, entries, size)
		}
	})
}

// An age file with any header either is refused or opens for its recipients, also after
// its header is rewritten.
func FuzzRewrapHeader(f *testing.F) {
	// All fuzzing processes need the same identities: those of the golden archives.
	dir := "testdata/golden/v1/"
	identity, recovery := identityIn(f, dir+"identity"), identityIn(f, dir+"recovery-identity")
	archives, err := filepath.Glob(dir + "snapshots/archives/*")
	if err != nil || len(archives) == 0 {
		f.Fatal(archives, err)
	}
	for _, name := range archives {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body[:min(len(body), 4096)])
	}
	keys := keysOf(f, []*age.X25519Identity{identity}, recovery.Recipient())
	f.Fuzz(func(t *testing.T, file []byte) {
		rewrapped, err := keys.RewrapHeader(file)
		if err != nil || rewrapped == nil {
			return
		}
		for _, with := range []*age.X25519Identity{identity, recovery} {
			before, err := age.Decrypt(bytes.NewReader(file), identity)
			if err != nil {
				continue // its payload may be too short
			}
			after, err := age.Decrypt(bytes.NewReader(rewrapped), with)
			if err != nil {
				t.Fatalf("the file with the new header does not open: %v", err)
			}
			one, oneErr := io.ReadAll(before)
			two, twoErr := io.ReadAll(after)
			if !bytes.Equal(one, two) || (oneErr == nil) != (twoErr == nil) {
				t.Errorf("%d bytes (%v) became %d (%v)", len(one), oneErr, len(two), twoErr)
			}
		}
	})
}

func identityIn(t testing.TB, file string) *age.X25519Identity {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := age.ParseIdentities(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return all[0].(*age.X25519Identity)
}

// No tar in an archive writes outside the folder, or anything but files and folders
// within it. After an error nothing remains.
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
