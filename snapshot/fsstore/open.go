package fsstore

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"github.com/gofrs/flock"

	"github.com/stasisd/stasis/fault"
)

// The entries of the store's folder that are not objects.
const (
	tmpDir   = "tmp"
	lockFile = "lock"
)

// The folders of objects. A store that was ever written to has one of them.
const (
	usersDir    = "users"
	archivesDir = "archives"
)

// uploadName matches the result of rand.Text.
var uploadName = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// Open opens the store in dir, creates dir if needed, and removes what interrupted writes
// left. Errors are store_failed, store_full and data_dir_in_use (another process has the
// folder). If dir holds files and is no store, the error is config and nothing in dir
// changes.
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
	if err := s.recognise(dir); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if err := s.own(dir); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if err := s.sweep(); err != nil {
		return nil, errors.Join(failure("open", err), s.Close())
	}
	return s, nil
}

// recognise refuses a folder with other contents, because Open would take it over. The
// operator has probably given a wrong path. recognise ignores a link that replaces a
// folder; the link is refused when it is used.
func (s *Store) recognise(dir string) error {
	names, err := s.names(".")
	if err != nil {
		return failure("open", err)
	}
	other := ""
	for _, name := range names {
		switch name {
		case usersDir, archivesDir:
			info, err := s.root.Lstat(name)
			if err != nil {
				return failure("open", err)
			}
			if !info.Mode().IsRegular() {
				return nil
			}
			other = name
		case tmpDir, lockFile, "lost+found": // a store without objects; a new file system
		default:
			other = name
		}
	}
	if other == "" {
		return nil
	}
	return fault.New(fault.Config, "fsstore.open",
		"%s is neither empty nor a snapshot store: it holds %q, but no folder %s or %s; give an empty folder", dir, other, usersDir, archivesDir)
}

// own locks the folder for this process.
func (s *Store) own(dir string) error {
	if err := s.noLinks(lockFile); err != nil { // the lock file would be created at the link's target
		return failure("open", err)
	}
	lock := flock.New(filepath.Join(dir, lockFile), flock.SetPermissions(fileMode))
	got, err := lock.TryLock()
	switch {
	case err != nil:
		return failure("open", err)
	case !got:
		return fault.New(fault.DataDirInUse, "fsstore.open", "another process uses the store in %s; stop that process, or give another store", dir)
	}
	s.lock = lock
	return nil
}

func readOnly(op string) error {
	return fault.New(fault.StoreFailed, "fsstore."+op, "the store was opened read-only")
}

// sweep removes orphaned temporary files: those with names that Upload creates. It leaves
// all other files.
func (s *Store) sweep() error {
	if err := s.makeFolder(tmpDir); err != nil {
		return err
	}
	names, err := s.names(tmpDir)
	for _, name := range names {
		if !uploadName.MatchString(name) {
			continue
		}
		name = path.Join(tmpDir, name)
		info, look := s.root.Lstat(name)
		if look == nil && info.Mode().IsRegular() {
			look = s.root.Remove(name)
		}
		if !errors.Is(look, fs.ErrNotExist) {
			err = errors.Join(err, look)
		}
	}
	return err
}
