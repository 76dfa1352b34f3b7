// Package fsstore keeps snapshots in a folder of the local file system.
//
// An object is a file of mode 0600 under its key; folders are 0700. A write goes to a
// temporary file in tmp/ of the same folder. The file is checked for length and hash,
// synced, and then linked (create) or renamed (replace) to its name. Then the folder is
// synced. Symbolic links inside the folder are refused. Open removes temporary files that
// a dead process left. A lock on the file "lock" gives one folder to one process at a
// time; other processes may read.
package fsstore

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/snapshot"
)

const (
	fileMode = 0o600
	dirMode  = 0o700
)

// Step is a step of a write that can be made to fail.
type Step string

// The steps of a write, in order.
const (
	StepOpen   Step = "open"   // creating the temporary file
	StepWrite  Step = "write"  // each write to it
	StepSync   Step = "sync"   // fsync of it
	StepPlace  Step = "place"  // link or rename
	StepSyncTo Step = "syncto" // fsync of the folder
	// StepRemove is the first step of a delete; StepSyncTo follows it.
	StepRemove Step = "remove"
)

// Options adjust a Store; the zero value is what a daemon uses.
type Options struct {
	// ReadOnly opens a folder while another process may own it. Open locks, sweeps and
	// creates nothing, and every write is store_failed.
	ReadOnly bool
	// Before is called before every step with the key, or "" while there is none. If it
	// returns an error, the step fails with that error; a write fails after half of its
	// bytes. Tests use it to simulate a full disk.
	Before func(step Step, key string) error
}

// Store is a [snapshot.Store] in a folder.
type Store struct {
	root *os.Root
	opts Options
	// place is locked for reading while folders are created and files put into them. It is
	// locked for writing while empty folders are removed.
	place sync.RWMutex
	// swap is held from reading an object until another has replaced it.
	swap sync.Mutex
	lock *flock.Flock // nil if opened read-only
	once sync.Once
	done error // of Close
}

var _ snapshot.Store = (*Store)(nil)

// failure gives the operating system's error a code.
func failure(op string, err error) error {
	code := fault.StoreFailed
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		code = fault.StoreFull
	}
	return fault.Wrap(err, code, "fsstore."+op, "")
}

// check refuses an empty key and an ended ctx.
func (s *Store) check(ctx context.Context, op string, key snapshot.Key) error {
	if err := ctx.Err(); err != nil {
		return fault.Wrap(err, fault.StoreFailed, "fsstore."+op, "")
	}
	if key == (snapshot.Key{}) {
		return fault.New(fault.StoreFailed, "fsstore."+op, "the object's name is empty")
	}
	return failure(op, s.noLinks(key.String()))
}

// noLinks refuses a path with a symbolic link in it. os.Root keeps links from leading
// outside the store; noLinks keeps them from leading to another object.
func (s *Store) noLinks(name string) error {
	for end := range len(name) + 1 {
		if end < len(name) && name[end] != '/' {
			continue
		}
		info, err := s.root.Lstat(name[:end])
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return &fs.PathError{Op: "open", Path: name[:end], Err: errors.New("the store contains a symbolic link")}
		}
	}
	return nil
}

// Open implements [snapshot.Store].
func (s *Store) Open(ctx context.Context, key snapshot.Key) (io.ReadCloser, error) {
	if err := s.check(ctx, "open", key); err != nil {
		return nil, err
	}
	f, err := s.root.OpenFile(key.String(), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(err, fault.SnapshotNotFound, "fsstore.open", "")
	}
	if err != nil {
		return nil, failure("open", err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(failure("open", errors.Join(err, errors.New("not a regular file"))), f.Close())
	}
	return f, nil
}

// Stat implements [snapshot.Store].
func (s *Store) Stat(ctx context.Context, key snapshot.Key) (snapshot.Stat, error) {
	if err := s.check(ctx, "stat", key); err != nil {
		return snapshot.Stat{}, err
	}
	info, err := s.root.Lstat(key.String())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return snapshot.Stat{}, fault.Wrap(err, fault.SnapshotNotFound, "fsstore.stat", "")
	case err != nil:
		return snapshot.Stat{}, failure("stat", err)
	case !info.Mode().IsRegular():
		return snapshot.Stat{}, failure("stat", errors.New("not a regular file"))
	}
	return snapshot.Stat{Size: info.Size(), Modified: info.ModTime().UTC()}, nil
}

// Delete implements [snapshot.Store]. It also removes folders that become empty.
func (s *Store) Delete(ctx context.Context, key snapshot.Key) error {
	if err := s.check(ctx, "delete", key); err != nil {
		return err
	}
	if s.opts.ReadOnly {
		return readOnly("delete")
	}
	name := key.String()
	s.place.Lock()
	defer s.place.Unlock()
	err := s.before(StepRemove, name)
	if err == nil {
		err = s.root.Remove(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return failure("delete", err)
	}
	folder := path.Dir(name)
	for strings.Contains(folder, "/") && s.root.Remove(folder) == nil {
		folder = path.Dir(folder)
	}
	if err = s.before(StepSyncTo, folder); err == nil {
		err = s.syncFolder(folder)
	}
	return failure("delete", err)
}

// List implements [snapshot.Store].
func (s *Store) List(ctx context.Context, folder snapshot.Key, limit int, after string) ([]string, error) {
	if err := s.check(ctx, "list", folder); err != nil {
		return nil, err
	}
	names, err := s.names(folder.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, failure("list", err)
	}
	slices.Sort(names)
	from, found := slices.BinarySearch(names, after)
	if found {
		from++
	}
	names = names[from:]
	return names[:min(limit, len(names))], nil
}

// names returns a folder's names, unsorted.
func (s *Store) names(folder string) ([]string, error) {
	dir, err := s.root.Open(folder)
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	return names, errors.Join(err, dir.Close())
}

// Close implements [snapshot.Store].
func (s *Store) Close() error {
	s.once.Do(func() {
		err := s.root.Close()
		if s.lock != nil {
			err = errors.Join(err, s.lock.Unlock())
		}
		s.done = failure("close", err)
	})
	return s.done
}
