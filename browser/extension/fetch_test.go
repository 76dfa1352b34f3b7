package extension_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stasisd/stasis/browser/extension"
	"github.com/stasisd/stasis/fault"
)

// shelf is a catalogue with the packed files of extensions. Its records are hashes.
type shelf struct {
	mu      sync.Mutex
	records map[string]bool
	packed  map[string][]byte
	fail    error // of the next write
	reads   int
	reading func() // called by each read
}

func newShelf() *shelf {
	return &shelf{records: map[string]bool{}, packed: map[string][]byte{}, reading: func() {}}
}

func (s *shelf) PackedExtension(_ context.Context, sha string, w io.Writer) error {
	s.mu.Lock()
	s.reads++
	raw, fail := s.packed[sha], s.fail
	s.mu.Unlock()
	s.reading()
	if raw == nil {
		return fault.New(fault.ExtensionNotFound, "test", "")
	}
	if fail != nil {
		raw = raw[:len(raw)/2]
	}
	_, err := w.Write(raw)
	return errors.Join(err, fail)
}

func (s *shelf) AddPackedExtension(_ context.Context, sha string, packed *io.SectionReader) error {
	raw, err := io.ReadAll(packed)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || s.fail != nil {
		return errors.Join(err, s.fail)
	}
	s.packed[sha] = raw
	return nil
}

func (s *shelf) ExtensionFiles(context.Context) (map[string]bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]bool{}
	for sha := range s.records {
		all[sha] = s.packed[sha] != nil
	}
	return all, s.fail
}

func (s *shelf) RemoveUnusedExtensions(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sha := range s.packed {
		if !s.records[sha] {
			delete(s.packed, sha)
		}
	}
	return nil
}

// record records an upload.
func (s *shelf) record(is *extension.Info) extension.Record {
	return func(i extension.Info, packed *io.SectionReader) (unused string, err error) {
		*is = i
		if packed != nil {
			err = s.AddPackedExtension(context.Background(), i.SHA256, packed)
		}
		if err == nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.records[i.SHA256] = true
		}
		return "", err
	}
}

// forget deletes a record.
func (s *shelf) forget(sha string) func() (string, error) {
	return func() (string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.records, sha)
		delete(s.packed, sha)
		return sha, nil
	}
}

// testKey signs what the shelf has.
var testKey = []byte("key")

// signed returns a zip as a daemon with testKey stores it.
func signed(sha string, packed []byte) []byte {
	mac := hmac.New(sha256.New, testKey)
	mac.Write([]byte("extension " + sha))
	return append(mac.Sum(nil), packed...)
}

func openStore(t *testing.T, s *shelf) (*extension.Store, string) {
	t.Helper()
	dir := t.TempDir()
	store, err := extension.OpenStore(dir, extension.NewSigned(s, testKey))
	if err != nil {
		t.Fatal(err)
	}
	return store, dir
}

// A store fetches an extension that it lacks, once for all who ask at the same time.
func TestFetchOnce(t *testing.T) {
	s := newShelf()
	raw := zipOf(t, entry{name: "manifest.json", body: goodManifest}, entry{name: "a/b.js", body: "1"})
	info, dir, err := write(t, raw)
	if err != nil {
		t.Fatal(err)
	}
	s.packed[info.SHA256] = signed(info.SHA256, pack(t, dir))
	store, _ := openStore(t, s)
	var all sync.WaitGroup
	for range 8 {
		to := filepath.Join(t.TempDir(), "x")
		all.Go(func() {
			if err := store.Copy(t.Context(), info.SHA256, to); err != nil {
				t.Error(err)
				return
			}
			if got, err := extension.Inspect(t.Context(), to); err != nil || got != info {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	all.Wait()
	if s.reads != 1 {
		t.Errorf("it was read %d times", s.reads)
	}
}

// A call that waits for the fetch of another one ends with its context.
func TestFetchIsAwaited(t *testing.T) {
	s := newShelf()
	store, dir := openStore(t, s)
	began, answer := make(chan struct{}), make(chan struct{})
	s.reading = func() { close(began); <-answer }
	sha := strings.Repeat("a", 64)
	first := make(chan error)
	go func() { first <- store.Copy(t.Context(), sha, filepath.Join(dir, "to")) }()
	<-began
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.Copy(ended, sha, filepath.Join(dir, "to")); !errors.Is(err, context.Canceled) {
		t.Errorf("the one that waits: %v", err)
	}
	close(answer)
	if err := <-first; !fault.Is(err, fault.ExtensionNotFound) {
		t.Errorf("the one that fetches: %v", err)
	}
}

// A fetch that fails leaves nothing, and the next one succeeds.
func TestFetchFails(t *testing.T) {
	s := newShelf()
	info, folder, err := write(t, zipOf(t, entry{name: "manifest.json", body: goodManifest}))
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := write(t, zipOf(t, entry{name: "manifest.json", body: goodManifest}, entry{name: "other.js"}))
	if err != nil {
		t.Fatal(err)
	}
	sha := info.SHA256
	zipped := pack(t, folder)
	whole := signed(sha, zipped)
	store, dir := openStore(t, s)
	fetch := func() error { return store.Copy(t.Context(), sha, filepath.Join(t.TempDir(), "x")) }
	for name, test := range map[string]struct {
		packed []byte
		fail   error
		want   fault.Code
	}{
		"no record":       {nil, nil, fault.ExtensionNotFound},
		"no catalogue":    {whole, fault.New(fault.CatalogueUnavailable, "test", ""), fault.CatalogueUnavailable},
		"other files":     {signed(sha, pack(t, other)), nil, fault.StoreFailed},
		"a part":          {whole[:len(whole)-1], nil, fault.StoreFailed},
		"a changed name":  {bytes.ReplaceAll(whole, []byte("manifest.json"), []byte("manifest.jsom")), nil, fault.StoreFailed},
		"no zip":          {signed(sha, []byte("no zip")), nil, fault.StoreFailed},
		"no signature":    {zipped, nil, fault.StoreFailed},
		"another's":       {signed(strings.Repeat("0", 64), zipped), nil, fault.StoreFailed},
		"only that":       {signed(sha, nil), nil, fault.StoreFailed},
		"a few bytes":     {[]byte("x"), nil, fault.StoreFailed},
		"another version": {signed(sha, zipOf(t, entry{name: "manifest.json", body: `{"manifest_version": 2, "name": "Probe", "version": "1"}`})), nil, fault.StoreFailed},
	} {
		t.Run(name, func(t *testing.T) {
			s.packed[sha], s.fail = test.packed, test.fail
			if err := fetch(); !fault.Is(err, test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if left := entriesOf(t, dir); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	s.packed[sha], s.fail = whole, nil
	if err := fetch(); err != nil {
		t.Error(err)
	}
}
