package snapshot_test

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// A save fails if an entry is not a regular file or folder, or if unpack would refuse its
// name. The message shows neither name nor path.
func TestRefusedEntries(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", at("link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(at("fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	data := func(name string) snapshot.Entry { return snapshot.Entry{Name: name, Data: []byte("x")} }
	for name, entries := range map[string][]snapshot.Entry{
		"link":         {{Name: "a", Path: at("link")}},
		"fifo":         {{Name: "a", Path: at("fifo")}},
		"socket":       {{Name: "a", Path: at("socket")}},
		"folder":       {{Name: "a", Path: dir}},
		"not a folder": {{Name: "a", Path: at("file"), Mode: fs.ModeDir}},
		"missing":      {{Name: "a", Path: at("missing")}},
		"twice":        {data("a"), data("a")},
		"below a file": {data("a/b"), data("a")},
		"parent":       {data("../a")},
		"absolute":     {data("/a")},
		"trailing":     {data("a/")},
		"nothing":      {data("")},
	} {
		v, store := newVault(t)
		_, err := v.Save(t.Context(), draft(1, entries...))
		if !fault.Is(err, fault.SaveFailed) || strings.Contains(fault.MessageOf(err), dir) {
			t.Errorf("%s: %v", name, err)
		}
		if names, err := store.List(t.Context(), snapshot.ArchiveFolder(), 1, ""); err != nil || len(names) > 0 {
			t.Errorf("%s: left %q, %v", name, names, err)
		}
	}
}

// changingStore changes a file between listing and reading.
type changingStore struct {
	snapshot.Store
	change func() error
}

func (s *changingStore) Upload(ctx context.Context) (snapshot.Upload, error) {
	up, err := s.Store.Upload(ctx)
	if change := s.change; err == nil && change != nil {
		s.change = nil
		err = change()
	}
	return up, err
}

// A save fails if a file is longer, shorter, replaced or deleted when it is read.
func TestFileChangesWhilePacked(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"longer":  func(path string) error { return os.WriteFile(path, []byte("longer than before"), 0o600) },
		"shorter": func(path string) error { return os.Truncate(path, 1) },
		"gone":    os.Remove,
		"a link": func(path string) error {
			return os.Rename(path+".link", path)
		},
		"written": func(path string) error {
			return os.Chtimes(path, start, start)
		},
	} {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc/passwd", path+".link"); err != nil {
			t.Fatal(err)
		}
		store := &changingStore{Store: memstore.New(0, time.Now), change: func() error { return change(path) }}
		v := vaultOf(store, snapshot.NewKeys(newIdentity(t), [32]byte{}))
		if _, err := v.Save(t.Context(), draft(1, snapshot.Entry{Name: "a", Path: path})); !fault.Is(err, fault.SaveFailed) {
			t.Errorf("%s: %v, want save_failed", name, err)
		}
		if _, err := v.Latest(t.Context(), place); !fault.Is(err, fault.SnapshotNotFound) {
			t.Errorf("%s: latest: %v", name, err)
		}
	}
}

// The same entries give the same tar, in any order.
func TestOrderDoesNotMatter(t *testing.T) {
	v, _ := newVault(t)
	a, b := snapshot.Entry{Name: "a", Data: []byte("1")}, snapshot.Entry{Name: "b/c", Data: bytes.Repeat([]byte("2"), 999)}
	one, two := save(t, v, draft(1, a, b)), save(t, v, draft(2, b, a))
	if one.Archive.TarSHA256 != two.Archive.TarSHA256 {
		t.Error("the tar depends on the order of the entries")
	}
}

// A save fails with store_full if the store is full at any byte, whatever archiver
// reports.
func TestStoreFullAtEveryByte(t *testing.T) {
	keys := snapshot.NewKeys(newIdentity(t), [32]byte{})
	d := draft(1, snapshot.Entry{Name: "a", Data: []byte("content")})
	full := vaultOf(memstore.New(0, time.Now), keys)
	size := save(t, full, d).Archive.StoredSize
	for capacity := int64(1); capacity < size; capacity += 7 {
		store := memstore.New(capacity, time.Now)
		if _, err := vaultOf(store, keys).Save(t.Context(), d); !fault.Is(err, fault.StoreFull) {
			t.Fatalf("%d of %d bytes: %v, want store_full", capacity, size, err)
		}
		if free, err := store.FreeSpace(t.Context()); err != nil || free != capacity {
			t.Fatalf("%d of %d bytes: %d left, %v", capacity, size, free, err)
		}
	}
}
