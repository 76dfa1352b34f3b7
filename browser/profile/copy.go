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

// youth is how long after a file was written its times say nothing for sure: a
// file system has clocks of some milliseconds, and what is written within one
// tick bears one time.
const youth = 100 * time.Millisecond

// chunk is how many bytes are copied before the time is looked at again: Chrome
// stands still meanwhile, and one file may be large.
const chunk = 8 << 20

// Copy is a copy of an environment in a user data directory of its own. It is
// brought up to date as often as is wanted, and what has not changed since is not
// copied again. Its methods are not safe for concurrent use.
type Copy struct {
	to   string
	have map[string]stamp // by name
}

// NewCopy makes a copy in an empty user data directory that no Chrome uses and
// nobody else may enter.
func NewCopy(userDataDir string) *Copy {
	return &Copy{to: userDataDir, have: map[string]stamp{}}
}

// stamp is how a file was before it was copied. Chrome maps no file of an
// environment into memory to write it, so none changes without a new time.
type stamp struct {
	inode            uint64
	size             int64
	written, changed int64 // mtime and ctime, nanoseconds since 1970
	young            bool  // another write may have left all this as it is
}

func stampOf(info fs.FileInfo) stamp {
	s := stamp{size: info.Size(), written: info.ModTime().UnixNano()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode, s.changed = sys.Ino, sys.Ctim.Nano()
	}
	return s
}

// Behind reports whether the environment in a user data directory has changed, or
// may have, since the copy was brought up to date. Chrome may run.
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

// Update brings the copy up to date with the environment in a user data
// directory, and returns how many bytes it copied. Of a Chrome that runs the copy
// is a mixture of moments; to be of one, Chrome must stand still. After an error
// it is of no use until an Update succeeds. A full disk is store_full.
func (c *Copy) Update(ctx context.Context, from string) (copied int64, err error) {
	const op = "profile.copy"
	files, err := Select(ctx, from)
	if err != nil {
		return 0, err
	}
	// Chrome could put a link in a file's or folder's place: none is followed out.
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
			return copied, late(ctx, op)
		}
		delete(left, f.Name)
		n, err := c.take(ctx, source, target, from, f)
		copied += n
		if err != nil && ctx.Err() != nil {
			return copied, late(ctx, op)
		}
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			return copied, fault.Wrap(err, fault.StoreFull, op, "there is no room for a copy of the environment")
		}
		if err != nil {
			return copied, fault.Wrap(err, fault.SaveFailed, op, "the environment could not be copied")
		}
	}
	for name := range left {
		if err := c.drop(target, name); err != nil {
			return copied, fault.Wrap(err, fault.StoreFailed, op, "the copy could not be brought up to date")
		}
	}
	return copied, nil
}

func late(ctx context.Context, op string) error {
	return fault.Wrap(ctx.Err(), fault.Timeout, op, "the environment could not be copied in time")
}

// take copies one file, unless it is as it was.
func (c *Copy) take(ctx context.Context, source, target *os.Root, from string, f File) (int64, error) {
	is := stampOf(f.info)
	if had, there := c.have[f.Name]; there && had == is {
		return 0, nil
	}
	delete(c.have, f.Name)
	rel, err := filepath.Rel(from, f.Path)
	if err != nil {
		return 0, err
	}
	in, err := source.OpenFile(rel, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) { // a Chrome that runs has just removed it
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
	n, err := pour(ctx, out, in)
	if err == nil {
		err = out.Chmod(0o600 | f.Mode&0o100)
	}
	made, serr := out.Stat()
	if err = errors.Join(err, serr, out.Close()); err == nil {
		// By the clock that the file's own times are of, whatever a daemon's says.
		is.young = tooYoung(is.changed, made.ModTime().UnixNano())
		c.have[f.Name] = is
	}
	return n, err
}

// tooYoung reports whether a file that changed at one time, in nanoseconds, was
// copied at another so soon that it may change again and bear the same time. One
// that changed in the future did so before a clock was set back, and what is
// written to it from now on bears another time.
func tooYoung(changed, copied int64) bool {
	age := copied - changed
	return -int64(youth) < age && age < int64(youth)
}

// pour copies a file until its end or that of ctx, by the kernel, which shares the
// blocks where the file system can.
func pour(ctx context.Context, out, in *os.File) (copied int64, err error) {
	for {
		n, err := io.CopyN(out, in, chunk)
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

// drop removes a file of the copy.
func (c *Copy) drop(target *os.Root, name string) error {
	delete(c.have, name)
	if err := target.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Sum stands for the names, sizes and times of what was copied.
func (c *Copy) Sum() [sha256.Size]byte {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(c.have)) {
		h.Write([]byte(name))
		h.Write(binary.LittleEndian.AppendUint64([]byte{0}, uint64(c.have[name].size)))
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(c.have[name].written)))
	}
	return [sha256.Size]byte(h.Sum(nil))
}
