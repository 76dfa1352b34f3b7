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

	"github.com/stasisd/stasis/fault"
)

// partPrefix is the prefix of incomplete files and folders.
const partPrefix = ".part-"

var shaPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Record records an extension that was uploaded. packed is what a catalogue keeps of it; nil:
// the store alone keeps its files. unused is the hash of another extension that is no longer
// needed, "" if none.
type Record func(info Info, packed *io.SectionReader) (unused string, err error)

// Store keeps extensions by the SHA-256 of their files, each in a folder that is complete
// or absent. Its methods are safe for concurrent use within one process.
type Store struct {
	dir     string
	signed  *Signed
	fetches *fetches
	mu      sync.RWMutex // writers add and remove folders; readers copy them
}

// OpenStore opens the store in a folder, creates the folder if it is missing, and removes
// what an earlier process left unfinished. signed may have extensions whose folder is
// missing; nil: there are none.
func OpenStore(dir string, signed *Signed) (*Store, error) {
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
	return &Store{dir: dir, signed: signed, fetches: newFetches()}, nil
}

// Put reads an extension, a zip or a .crx, to its end, waits for its turn, checks it (see
// [Write]) and stores it. Put then calls record with the extension, before anything can
// remove it again, and removes what that returns. If record fails, Put removes the extension
// if it is new, unless the catalogue has not answered: then the record may exist.
func (s *Store) Put(ctx context.Context, r io.Reader, turn func(context.Context) (leave func(), err error), record Record) error {
	return s.receive(ctx, r, turn, func(part string, info Info) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		added, err := s.add(part, info.SHA256)
		if err != nil {
			return err
		}
		unused, err := record(info, nil)
		if err != nil && added && !fault.Is(err, fault.CatalogueUnavailable) {
			return errors.Join(err, s.remove(info.SHA256))
		}
		if err != nil || unused == "" || unused == info.SHA256 {
			return err
		}
		return s.remove(unused)
	})
}

// receive reads an upload to its end, waits for its turn, unpacks it and calls do; see
// unpack.
func (s *Store) receive(ctx context.Context, r io.Reader, turn func(context.Context) (leave func(), err error), do func(part string, info Info) error) error {
	upload, err := s.unnamed()
	if err != nil {
		return err
	}
	defer func() { _ = upload.Close() }() // it is not needed any more
	size, err := io.Copy(diskWriter{upload}, r)
	if err != nil {
		return err
	}
	leave, err := turn(ctx)
	if err != nil {
		return err
	}
	defer leave()
	return s.unpack(ctx, io.NewSectionReader(upload, 0, size), do)
}

// unnamed creates a file without a name, so that closing it removes it.
func (s *Store) unnamed() (*os.File, error) {
	file, err := os.CreateTemp(s.dir, partPrefix)
	if err != nil {
		return nil, storeError(err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(storeError(err), file.Close())
	}
	return file, nil
}

// add makes a complete folder visible under its hash, unless it exists.
func (s *Store) add(part, sha string) (added bool, err error) {
	to := filepath.Join(s.dir, sha)
	if s.has(sha) {
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

// Copy copies an extension into a new folder. If the store lacks it, Copy first gets it from
// the catalogue.
func (s *Store) Copy(ctx context.Context, sha, to string) error {
	if !shaPattern.MatchString(sha) {
		return storeError(fs.ErrInvalid)
	}
	for { // a delete may remove what was fetched; then the next fetch does not find it
		if has, err := s.copyFolder(ctx, sha, to); has || err != nil {
			return err
		}
		if err := s.fetch(ctx, sha); err != nil {
			return err
		}
	}
}

// copyFolder copies an extension if the store has it.
func (s *Store) copyFolder(ctx context.Context, sha, to string) (has bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.has(sha) {
		return false, nil
	}
	return true, Copy(ctx, filepath.Join(s.dir, sha), to)
}

// has reports whether the store has an extension.
func (s *Store) has(sha string) bool {
	_, err := os.Lstat(filepath.Join(s.dir, sha))
	return err == nil
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

// remove removes an extension, if the store has it.
func (s *Store) remove(sha string) error {
	if !shaPattern.MatchString(sha) {
		return storeError(fs.ErrInvalid)
	}
	// It is renamed first, so that a folder under its hash is always complete.
	gone := filepath.Join(s.dir, partPrefix+sha)
	err := os.Rename(filepath.Join(s.dir, sha), gone)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return storeError(err)
	}
	return storeError(os.RemoveAll(gone))
}
