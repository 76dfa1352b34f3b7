package gate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
)

// CacheGates are gates in place of the indexes of the Cache API. A page that asks for a cache
// waits there until the caches are in place.
type CacheGates struct {
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

// CreateCacheGates puts gates into the profile [profile.Default] of a user data directory,
// before it enters the running Chrome's. The caller closes them.
func CreateCacheGates(userDataDir string) (*CacheGates, error) {
	dir, err := os.OpenRoot(userDataDir)
	if err != nil {
		return nil, cachesFailed(err)
	}
	g := &CacheGates{dir: dir}
	folders, err := profile.CacheFolders(dir.FS(), profile.Default)
	for _, folder := range folders {
		if err == nil {
			err = g.create(folder)
		}
	}
	if err != nil {
		return nil, cachesFailed(errors.Join(err, dir.Close()))
	}
	return g, nil
}

// create puts a gate in place of one index. A folder without an index is damaged, and Chrome
// ignores it.
func (g *CacheGates) create(folder string) error {
	name := path.Join(profile.Default, folder, index)
	content, err := fs.ReadFile(g.dir.FS(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = g.dir.Rename(name, name+indexSuffix)
	}
	if err == nil {
		err = mkfifo(g.dir, name)
	}
	g.indexes = append(g.indexes, cacheIndex{folder, content})
	return err
}

// mkfifo creates a pipe.
func mkfifo(dir *os.Root, name string) error {
	folder, err := dir.Open(path.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(unix.Mkfifoat(int(folder.Fd()), path.Base(name), 0o600), folder.Close())
}

// maxIndexes bounds how many folders have a gate. Their indexes are kept in memory.
const maxIndexes = 1000

// CachesTooLarge reports whether the indexes in the profile [profile.Default] are too many or
// too large for gates: together more than one pipe can hold.
func CachesTooLarge(userDataDir fs.FS) bool {
	folders, err := profile.CacheFolders(userDataDir, profile.Default)
	if err != nil || len(folders) > maxIndexes {
		return true
	}
	var size int64
	for _, folder := range folders {
		if info, err := fs.Stat(userDataDir, path.Join(profile.Default, folder, index)); err == nil {
			size += info.Size()
		}
	}
	return size > maxFile
}

// PlaceCaches moves the caches from [profile.Unpacking] to the profile [profile.Default], which
// no Chrome has opened yet.
func PlaceCaches(userDataDir string) error {
	dir, err := os.OpenRoot(userDataDir)
	if err != nil {
		return cachesFailed(err)
	}
	err = moveAllCaches(dir, func(folder string) (string, error) {
		to := path.Join(profile.Default, folder)
		return to, dir.MkdirAll(to, 0o700)
	})
	if err == nil {
		err = endUnpacking(dir)
	}
	return cachesFailed(errors.Join(err, dir.Close()))
}

// Open moves the caches from [profile.Unpacking] to the profile that Chrome runs on, and opens
// the gates. If Chrome has removed an origin's folder meanwhile, its caches are removed too.
func (g *CacheGates) Open() error {
	err := moveAllCaches(g.dir, func(folder string) (string, error) {
		to := path.Join(profile.Spare, folder)
		if _, err := g.dir.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return to, nil
	})
	for _, i := range g.indexes {
		if err == nil {
			err = g.open(path.Join(profile.Spare, i.folder, index), i.content)
		}
	}
	if err == nil {
		err = endUnpacking(g.dir)
	}
	return cachesFailed(err)
}

// Close closes the user data directory.
func (g *CacheGates) Close() { _ = g.dir.Close() } // only a handle

// open replaces a pipe by the index. A reader that waits at the pipe gets it too.
func (g *CacheGates) open(name string, content []byte) error {
	pipe, err := g.dir.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // Chrome has removed the folder
	}
	if err != nil {
		return err
	}
	defer func() { _ = pipe.Close() }() // what was written is with the reader
	if err := checkPipe(pipe, len(content)); err != nil {
		return err
	}
	if err := g.dir.Rename(name+indexSuffix, name); err != nil {
		return err
	}
	return fillPipe(pipe, content)
}

// moveAllCaches moves the caches of each folder to the folder that to returns; "" removes them.
func moveAllCaches(dir *os.Root, to func(folder string) (string, error)) error {
	from := path.Join(profile.Unpacking, profile.Default)
	if _, err := dir.Lstat(from); err != nil { // a tail has at least one file
		return err
	}
	folders, err := profile.CacheFolders(dir.FS(), from)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		into, err := to(folder)
		switch {
		case err != nil:
		case into == "":
			err = dir.RemoveAll(path.Join(from, folder))
		default:
			err = moveCaches(dir, path.Join(from, folder), into)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// endUnpacking removes the folder of the tail, which says that the environment is not complete.
// A file that is left there has not been restored.
func endUnpacking(dir *os.Root) error {
	err := fs.WalkDir(dir.FS(), profile.Unpacking, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = fmt.Errorf("%s belongs to no cache", name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return dir.RemoveAll(profile.Unpacking)
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

// cachesFailed is the error of caches that could not get into a profile.
func cachesFailed(err error) error {
	return fault.Wrap(err, fault.BrowserFailed, "gate.caches", "the caches could not be moved into the profile")
}
