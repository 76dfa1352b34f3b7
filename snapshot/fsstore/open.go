package fsstore

import (
	"errors"
	"os"
	"path"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/stasisd/stasis/fault"
)

// What stands in the folder beside the objects.
const (
	tmpDir   = "tmp"
	lockFile = "lock"
)

// Open opens the store in dir, which is made if it is not there, and removes
// what interrupted writes left. Errors are store_failed, store_full, and
// data_dir_in_use when another process has the folder.
func Open(dir string, opts Options) (*Store, error) {
	if !opts.ReadOnly {
		if err := os.MkdirAll(dir, dirMode); err != nil {
			return nil, failure("open", err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, failure("open", err)
	}
	s := &Store{root: root, opts: opts}
	if opts.ReadOnly {
		return s, nil
	}
	if err := s.own(dir); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if err := s.sweep(); err != nil {
		return nil, errors.Join(failure("open", err), s.Close())
	}
	return s, nil
}

// own takes the folder for this process.
func (s *Store) own(dir string) error {
	if err := s.noLinks(lockFile); err != nil { // it would be made where the link leads
		return failure("open", err)
	}
	lock := flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(fileMode))
	got, err := lock.TryLock()
	switch {
	case err != nil:
		return failure("open", err)
	case !got:
		return fault.New(fault.DataDirInUse, "fsstore.open", "another process has the store in %s", dir)
	}
	s.lock = lock
	return nil
}

func readOnly(op string) error {
	return fault.New(fault.StoreFailed, "fsstore."+op, "the store was opened for reading only")
}

// sweep removes orphaned temporary files.
func (s *Store) sweep() error {
	if err := s.makeFolder(tmpDir); err != nil {
		return err
	}
	names, err := s.names(tmpDir)
	for _, name := range names {
		err = errors.Join(err, s.root.Remove(path.Join(tmpDir, name)))
	}
	return err
}
