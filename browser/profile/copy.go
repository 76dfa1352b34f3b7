package profile

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
)

// minAge is the age below which a file's times prove nothing. A file system's clock ticks
// every few milliseconds, and all writes within one tick get the same time.
const minAge = 100 * time.Millisecond

// copyChunk is the number of bytes that are copied between two checks of the deadline:
// Chrome is frozen meanwhile, and a single file may be large.
const copyChunk = 8 << 20

// Copy is a copy of an environment in a separate user data directory. It can be updated
// any number of times; an update copies only what has changed. Its methods are not safe
// for concurrent use.
type Copy struct {
	to   string
	have map[string]stamp // by name
}

// NewCopy makes a copy in an empty user data directory, which no Chrome uses and only the
// daemon may enter.
func NewCopy(userDataDir string) *Copy {
	return &Copy{to: userDataDir, have: map[string]stamp{}}
}

// stamp is a file's metadata before it was copied. Chrome writes no file of an
// environment through a memory map, so every change gives a file a new time.
type stamp struct {
	inode            uint64
	size             int64
	written, changed int64 // mtime and ctime, nanoseconds since 1970
	recent           bool  // a later write may leave all these fields the same
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), written: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode, s.changed = sys.Ino, sys.Ctim.Nano()
	}
	return s
}

// Behind reports whether the environment in a user data directory has changed, or may
// have, since the last update of the copy. Chrome may run.
func (c *Copy) Behind(ctx context.Context, from string) (bool, error) {
	files, err := Select(ctx, from)
	if err != nil {
		return false, err
	}
	for _, f := range files {
		if had, there := c.have[f.Name]; !there || had != stampOf(f.info) {
			return true, nil
		}
	}
	return len(files) != len(c.have), nil
}

// Update updates the copy from the environment in a user data directory, and returns the
// number of bytes copied. While Chrome runs, the copy mixes states of different times;
// for a consistent copy Chrome must be frozen. After an error the copy is unusable until
// an Update succeeds. A full disk is store_full.
func (c *Copy) Update(ctx context.Context, from string) (copied int64, err error) {
	const op = "profile.copy"
	files, err := Select(ctx, from)
	if err != nil {
		return 0, err
	}
	// Chrome could replace a file or a folder by a link. No link that leads out is
	// followed.
	source, err := os.OpenRoot(from)
	if err != nil {
		return 0, fault.Wrap(err, fault.SaveFailed, op, "the profile could not be read")
	}
	defer func() { _ = source.Close() }() // only a handle
	target, err := os.OpenRoot(c.to)
	if err != nil {
		return 0, fault.Wrap(err, fault.StoreFailed, op, "the copy's folder could not be opened")
	}
	defer func() { _ = target.Close() }() // only a handle
	left := maps.Clone(c.have)
	for _, f := range files {
		if ctx.Err() != nil {
			return copied, timeoutError(ctx, op)
		}
		delete(left, f.Name)
		n, err := c.copyFile(ctx, source, target, from, f)
		copied += n
		if err != nil && ctx.Err() != nil {
			return copied, timeoutError(ctx, op)
		}
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return copied, fault.Wrap(err, fault.StoreFull, op, "the disk has no space for a copy of the environment")
		}
		if err != nil {
			return copied, fault.Wrap(err, fault.SaveFailed, op, "the environment could not be copied")
		}
	}
	for name := range left {
		if err := c.drop(target, name); err != nil {
			return copied, fault.Wrap(err, fault.StoreFailed, op, "a file could not be removed from the copy of the environment")
		}
	}
	return copied, nil
}

func timeoutError(ctx context.Context, op string) error {
	return fault.Wrap(ctx.Err(), fault.Timeout, op, "the environment could not be copied in time")
}

// copyFile copies one file unless it is unchanged.
func (c *Copy) copyFile(ctx context.Context, source, target *os.Root, from string, f File) (int64, error) {
	is := stampOf(f.info)
	if had, there := c.have[f.Name]; there && had == is {
		return 0, nil
	}
	delete(c.have, f.Name)
	if f.Data != nil {
		return c.write(target, f, is)
	}
	rel, err := filepath.Rel(from, f.Path)
	if err != nil {
		return 0, err
	}
	in, err := source.OpenFile(rel, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) { // a running Chrome has just removed it
		return 0, c.drop(target, f.Name)
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }() // only read from
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return 0, errors.Join(err, fs.ErrInvalid)
	}
	if err := target.MkdirAll(path.Dir(f.Name), 0o700); err != nil {
		return 0, err
	}
	out, err := target.OpenFile(f.Name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := copyContents(ctx, out, in)
	if err == nil {
		err = out.Chmod(0o600 | f.Mode&0o100)
	}
	made, serr := out.Stat()
	if err = errors.Join(err, serr, out.Close()); err == nil {
		// The age is computed from the file system's clock, because the daemon's may
		// differ.
		is.recent = tooRecent(is.changed, made.ModTime().UnixNano())
		c.have[f.Name] = is
	}
	return n, err
}

// write writes a file whose content is not that on disk. is is the stamp of the file that
// the content depends on.
func (c *Copy) write(target *os.Root, f File, is stamp) (int64, error) {
	err := target.MkdirAll(path.Dir(f.Name), 0o700)
	if err == nil {
		err = target.WriteFile(f.Name, f.Data, 0o600)
	}
	if err != nil {
		return 0, err
	}
	made, err := target.Lstat(f.Name)
	if err == nil {
		is.recent = tooRecent(is.changed, made.ModTime().UnixNano())
		c.have[f.Name] = is
	}
	return int64(len(f.Data)), err
}

// tooRecent reports whether a file was copied so soon after its last change that another
// change could get the same time. Both times are in nanoseconds. A change time in the
// future dates from before the clock was set back; later writes get another time.
func tooRecent(changed, copied int64) bool {
	age := copied - changed
	return -int64(minAge) < age && age < int64(minAge)
}

// copyContents copies a file until its end, or until ctx ends. The kernel does the
// copying and shares the blocks if the file system can.
func copyContents(ctx context.Context, out, in *os.File) (copied int64, err error) {
	for {
		n, err := io.CopyN(out, in, copyChunk)
		copied += n
		if errors.Is(err, io.EOF) {
			return copied, nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return copied, err
		}
	}
}

// drop removes a file from the copy.
func (c *Copy) drop(target *os.Root, name string) error {
	delete(c.have, name)
	if err := target.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Sum returns a hash of the names, sizes and times of the copied files.
func (c *Copy) Sum() [sha256.Size]byte {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(c.have)) {
		h.Write([]byte(name))
		h.Write(binary.LittleEndian.AppendUint64([]byte{0}, uint64(c.have[name].size)))
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(c.have[name].written)))
	}
	return [sha256.Size]byte(h.Sum(nil))
}
