package extension

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// partPrefix is the prefix of incomplete files and folders.
const partPrefix = ".part-"

var shaPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Store keeps extensions by the SHA-256 of their files, each in a folder that is complete
// or absent. Its methods are safe for concurrent use within one process.
type Store struct {
	dir string
	mu  sync.RWMutex // writers add and remove folders; readers copy them
}

// OpenStore opens the store in a folder, creates the folder if it is missing, and removes
// what an earlier process left unfinished.
func OpenStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, storeError(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, storeError(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), partPrefix) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return nil, storeError(err)
			}
		}
	}
	return &Store{dir: dir}, nil
}

// Put reads an extension, a zip or a .crx, to its end, waits for its turn, checks it (see
// [Write]) and stores it. Put then calls record with the extension, before anything can
// remove it again. record returns the hash of another extension that is no longer needed,
// "" if none; Put removes that one. If record fails, Put removes the extension if it is
// new.
func (s *Store) Put(ctx context.Context, r io.Reader, turn func(context.Context) (leave func(), err error), record func(Info) (unused string, err error)) (err error) {
	upload, err := os.CreateTemp(s.dir, partPrefix)
	if err != nil {
		return storeError(err)
	}
	// The file has no name while it is in use, so closing it removes it.
	defer func() { _ = upload.Close() }()
	if err := os.Remove(upload.Name()); err != nil {
		return storeError(err)
	}
	size, err := io.Copy(diskWriter{upload}, r)
	if err != nil {
		return err
	}
	leave, err := turn(ctx)
	if err != nil {
		return err
	}
	defer leave()
	part, err := os.MkdirTemp(s.dir, partPrefix)
	if err != nil {
		return storeError(err)
	}
	defer func() { err = errors.Join(err, storeError(os.RemoveAll(part))) }()
	info, err := Write(ctx, upload, size, part)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	added, err := s.add(part, info.SHA256)
	if err != nil {
		return err
	}
	unused, err := record(info)
	if err != nil && added {
		return errors.Join(err, s.remove(info.SHA256))
	}
	if err != nil || unused == "" || unused == info.SHA256 {
		return err
	}
	return s.remove(unused)
}

// add makes a complete folder visible under its hash, unless it exists.
func (s *Store) add(part, sha string) (added bool, err error) {
	to := filepath.Join(s.dir, sha)
	if _, err := os.Lstat(to); err == nil {
		return false, nil
	}
	err = filepath.WalkDir(part, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return syncFolder(at)
	})
	if err == nil {
		err = os.Rename(part, to)
	}
	if err == nil {
		err = syncFolder(s.dir)
	}
	return err == nil, storeError(err)
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Copy copies an extension into a new folder.
func (s *Store) Copy(ctx context.Context, sha, to string) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !shaPattern.MatchString(sha) {
		return storeError(fs.ErrInvalid)
	}
	return Copy(ctx, filepath.Join(s.dir, sha), to)
}

// Delete calls forget, which returns the hash of an extension that no record names any
// more, and removes that extension. "" removes nothing.
func (s *Store) Delete(forget func() (sha string, err error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	sha, err := forget()
	if err != nil || sha == "" {
		return err
	}
	return s.remove(sha)
}

func (s *Store) remove(sha string) error {
	if !shaPattern.MatchString(sha) {
		return storeError(fs.ErrInvalid)
	}
	// It is renamed first, so that a folder under its hash is always complete.
	gone := filepath.Join(s.dir, partPrefix+sha)
	if err := os.Rename(filepath.Join(s.dir, sha), gone); err != nil {
		return storeError(err)
	}
	return storeError(os.RemoveAll(gone))
}
