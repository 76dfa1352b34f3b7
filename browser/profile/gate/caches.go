package gate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
)

// Caches are gates in place of the indexes of the Cache API. A page that asks for a cache waits
// there until the caches are in place.
type Caches struct {
	// dir is the user data directory. It was opened before a page ran, and its methods do not
	// follow links out of it: Chrome may have replaced any folder since.
	dir     *os.Root
	indexes []cacheIndex
}

// cacheIndex is the index of an origin's or a bucket's caches.
type cacheIndex struct {
	folder  string // in a profile
	content []byte
}

const index = "index.txt"

// indexSuffix is added to the name of an index while a gate has its place.
const indexSuffix = ".waiting"

// HoldCaches puts gates into the profile [profile.Default] of a user data directory, before it
// enters the running Chrome's. The caller closes the result after Open; until then it owns dir.
func HoldCaches(dir *os.Root) (c Caches, err error) {
	c.dir = dir
	folders, err := profile.CacheFolders(dir.FS(), profile.Default)
	for _, folder := range folders {
		name := path.Join(profile.Default, folder, index)
		var content []byte
		if err == nil {
			content, err = fs.ReadFile(dir.FS(), name)
		}
		if errors.Is(err, fs.ErrNotExist) { // a damaged environment: Chrome ignores the folder
			err = nil
			continue
		}
		if err == nil {
			err = dir.Rename(name, name+indexSuffix)
		}
		if err == nil {
			err = mkfifo(dir, name)
		}
		c.indexes = append(c.indexes, cacheIndex{folder, content})
	}
	return c, moveFailed(err)
}

// CachesTooLarge reports whether an index in the profile [profile.Default] does not fit into a
// gate.
func CachesTooLarge(dir fs.FS) bool {
	folders, err := profile.CacheFolders(dir, profile.Default)
	return err != nil || slices.ContainsFunc(folders, func(folder string) bool {
		info, err := fs.Stat(dir, path.Join(profile.Default, folder, index))
		return err == nil && info.Size() > maxFile
	})
}

// PlaceCaches moves the caches from [profile.Unpacking] to the profile [profile.Default], which
// no Chrome has opened yet. Errors are those of [Set.Open].
func PlaceCaches(dir *os.Root) error {
	err := place(dir, func(folder string) (string, error) {
		to := path.Join(profile.Default, folder)
		return to, dir.MkdirAll(to, 0o700)
	})
	if err == nil {
		err = dir.RemoveAll(profile.Unpacking)
	}
	return moveFailed(err)
}

// mkfifo creates a pipe.
func mkfifo(dir *os.Root, name string) error {
	folder, err := dir.Open(path.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(unix.Mkfifoat(int(folder.Fd()), path.Base(name), 0o600), folder.Close())
}

// Open moves the caches from [profile.Unpacking] to the profile that Chrome runs on, and opens
// the gates. If Chrome has removed an origin's folder meanwhile, its caches are removed too.
// Errors are those of [Set.Open].
func (c Caches) Open() error {
	err := place(c.dir, func(folder string) (string, error) {
		to := path.Join(profile.Spare, folder)
		if _, err := c.dir.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return to, nil
	})
	for _, i := range c.indexes {
		if err == nil {
			err = c.openIndex(path.Join(profile.Spare, i.folder, index), i.content)
		}
	}
	if err == nil { // last, because it says that the environment is not complete
		err = c.dir.RemoveAll(profile.Unpacking)
	}
	return moveFailed(err)
}

// place moves the caches of each folder to the folder that to returns; "" drops them.
func place(dir *os.Root, to func(folder string) (string, error)) error {
	from := path.Join(profile.Unpacking, profile.Default)
	folders, err := profile.CacheFolders(dir.FS(), from)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		into, err := to(folder)
		if err == nil && into != "" {
			err = moveCaches(dir, path.Join(from, folder), into)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moveCaches moves the caches of one folder.
func moveCaches(dir *os.Root, from, to string) error {
	caches, err := fs.ReadDir(dir.FS(), from)
	if err != nil {
		return err
	}
	for _, cache := range caches {
		target := path.Join(to, cache.Name())
		if _, err := dir.Lstat(target); err == nil {
			return fmt.Errorf("%w: Chrome's profile already has the cache %s", ErrConflict, cache.Name())
		}
		if err := dir.Rename(path.Join(from, cache.Name()), target); err != nil {
			return err
		}
	}
	return nil
}

// openIndex replaces a pipe by the index. A reader that waits at the pipe gets it too.
func (c Caches) openIndex(name string, content []byte) error {
	pipe, err := c.dir.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Chrome has removed the folder
	}
	if err != nil {
		return err
	}
	defer func() { _ = pipe.Close() }() // what was written is with the reader
	info, err := pipe.Stat()
	switch {
	case err != nil:
	case info.Mode().Type() != fs.ModeNamedPipe:
		err = fmt.Errorf("%w: Chrome has replaced an index of caches", ErrConflict)
	default:
		err = growPipe(pipe, len(content))
	}
	if err == nil {
		err = c.dir.Rename(name+indexSuffix, name)
	}
	if err == nil {
		_, err = pipe.Write(content)
	}
	return err
}

// Close closes the user data directory.
func (c Caches) Close() error {
	return fault.Wrap(c.dir.Close(), fault.Internal, "gate.caches", "")
}
