// Package files reads and writes the files of live sessions: downloads of their pages,
// and files that pages may upload. They are in a folder of the session's run directory
// and are removed with it. No snapshot contains them. Chrome can write to that folder, so
// nothing in it is trusted.
package files

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/downloads"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// Sessions are the live sessions whose files are read and written.
type Sessions interface {
	// WithDir calls do with the run directory of a live session, for a caller that may
	// drive it. The context of do ends when an end of the session begins.
	WithDir(ctx context.Context, c access.Caller, id string, do func(context.Context, *browser.Dir) error) error
}

// Keys are the callers' API keys; see [access.Keys].
type Keys interface {
	// CallContext returns a context that ends with ctx or when the caller's key is deleted.
	CallContext(ctx context.Context, c access.Caller) (_ context.Context, leave func(), err error)
}

// Info describes one file of a session.
type Info struct {
	Name    string
	GUID    string // that CDP gave to the download; "" if the file is no download
	Size    int64  // bytes
	ModTime time.Time
}

// Files gives access to the files of live sessions. Its methods are safe for concurrent
// use. If the session is not running, the error is session_not_running; if there is no
// such file, file_not_found.
type Files struct {
	sessions Sessions
	keys     Keys
}

// New makes Files for some sessions.
func New(sessions Sessions, keys Keys) *Files { return &Files{sessions: sessions, keys: keys} }

// partPrefix marks an upload that is not complete yet.
const partPrefix = ".stasis-part-"

// open opens the files folder of a live session and calls do. Chrome can write to the
// folder, so nothing in it is trusted: every name is resolved inside the folder, links do
// not lead out of it, and only regular files count.
func (f *Files) open(ctx context.Context, c access.Caller, id string, do func(_ context.Context, in folder) error) error {
	return f.sessions.WithDir(ctx, c, id, func(ctx context.Context, dir *browser.Dir) error {
		in, err := openFolder(dir)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }() // only a handle
		return do(ctx, in)
	})
}

// openFolder opens the files folder of a run directory. The caller closes it.
func openFolder(dir *browser.Dir) (folder, error) {
	run, err := os.OpenRoot(dir.Path)
	if err != nil {
		return folder{}, fault.Wrap(err, fault.StoreFailed, "session.files", "the session's files cannot be opened")
	}
	defer func() { _ = run.Close() }() // only a handle
	root, err := run.OpenRoot(filepath.Base(dir.Files()))
	if err != nil {
		return folder{}, fault.Wrap(err, fault.StoreFailed, "session.files", "the session's files cannot be opened")
	}
	return folder{root, dir.Downloads(), dir.UID}, nil
}

// folder is the files folder of one session.
type folder struct {
	*os.Root
	downloads *downloads.Folder
	uid       int // owner of the files; less than 0: the daemon's user
}

// named returns the name of the file that a caller means: a name, or the GUID of a
// download.
func (f folder) named(name string) string {
	if _, err := f.Lstat(name); err != nil {
		if file := f.downloads.Find(name); file != "" {
			return file
		}
	}
	return name
}

// ListFiles lists a session's files by name.
func (f *Files) ListFiles(ctx context.Context, c access.Caller, id string) ([]Info, error) {
	list := []Info{}
	err := f.open(ctx, c, id, func(_ context.Context, in folder) (err error) {
		list, err = in.list()
		return err
	})
	return list, err
}

// list lists the files by name.
func (f folder) list() ([]Info, error) {
	entries, err := fs.ReadDir(f.FS(), ".")
	if err != nil {
		return nil, fault.Wrap(err, fault.StoreFailed, "session.files", "the session's files cannot be listed")
	}
	list, guids := []Info{}, f.downloads.GUIDs()
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), partPrefix) {
			continue // removed meanwhile, or not a regular file
		}
		list = append(list, Info{Name: e.Name(), GUID: guids[e.Name()], Size: info.Size(), ModTime: info.ModTime().UTC()})
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// openFile opens a regular file for reading.
func (f folder) openFile(name string) (*os.File, fs.FileInfo, error) {
	// O_NONBLOCK: a pipe in the folder must not block the daemon.
	file, err := f.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, noSuchFile(name)
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		_ = file.Close() // nothing was written
		return nil, nil, noSuchFile(name)
	}
	return file, info, nil
}

// OpenFile opens one file for reading, by its name or by the GUID of its download. The
// caller closes it.
func (f *Files) OpenFile(ctx context.Context, c access.Caller, id, name string) (file *os.File, err error) {
	err = f.open(ctx, c, id, func(_ context.Context, in folder) error {
		if file, _, err = in.openFile(in.named(name)); err != nil {
			return noSuchFile(name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return file, nil
}

// PutFile stores the data of r under a name and replaces a file of that name. After an
// error nothing is stored. The prefix of incomplete uploads is invalid_field: lists would
// not show such a file.
func (f *Files) PutFile(ctx context.Context, c access.Caller, id, name string, r io.Reader) error {
	return f.store(ctx, c, id, name, r, func(in folder, part string) error {
		return errors.Join(in.Rename(part, name), in.downloads.Forget(name))
	})
}

// AddFile is [Files.PutFile] that replaces no file: a name that is taken gets a number, such
// as "report (1).txt". It returns the name under which the file is stored.
func (f *Files) AddFile(ctx context.Context, c access.Caller, id, name string, r io.Reader) (stored string, err error) {
	err = f.store(ctx, c, id, name, r, func(in folder, part string) (err error) {
		stored, err = downloads.Unused(name, func(name string) error { return in.Link(part, name) })
		return errors.Join(err, in.Remove(part))
	})
	return stored, err
}

// store reads an upload into a part of the files folder, and calls finish to give it its
// name.
func (f *Files) store(ctx context.Context, c access.Caller, id, name string, r io.Reader, finish func(in folder, part string) error) error {
	if strings.HasPrefix(name, partPrefix) {
		return fault.New(fault.InvalidField, "session.files", "name: must not begin with %s, the prefix of incomplete uploads; any other file name is allowed", partPrefix)
	}
	ctx, leave, err := f.keys.CallContext(ctx, c)
	if err != nil {
		return err
	}
	defer leave()
	return f.open(ctx, c, id, func(ctx context.Context, in folder) error {
		err := in.store(ctx, r, func(part string) error { return finish(in, part) })
		if err == nil {
			// An end of the session that has begun meanwhile may not have found the file.
			err = context.Cause(ctx)
		}
		return putFailed(err)
	})
}

// store writes what it reads from r to a file, and calls finish to give the file its name.
func (f folder) store(ctx context.Context, r io.Reader, finish func(part string) error) (err error) {
	part := partPrefix + rand.Text()
	file, err := f.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Remove(part) // only the first error is returned
		}
	}()
	_, err = io.Copy(file, access.Reader(ctx, r))
	if f.uid >= 0 && err == nil && os.Geteuid() == 0 {
		err = file.Chown(f.uid, f.uid)
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = finish(part)
	}
	return err
}

// putFailed gives the error of a failed upload a code. An error that has one keeps it.
func putFailed(err error) error {
	var known *fault.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.StoreFull, "session.files", "the disk has no space for the file")
	default:
		return fault.Wrap(err, fault.StoreFailed, "session.files", "the file could not be stored")
	}
}

// DeleteFile removes one file, by its name or by the GUID of its download.
func (f *Files) DeleteFile(ctx context.Context, c access.Caller, id, name string) error {
	return f.open(ctx, c, id, func(ctx context.Context, in folder) error {
		file := in.named(name)
		if info, err := in.Lstat(file); err != nil || !info.Mode().IsRegular() {
			return noSuchFile(name)
		}
		err := errors.Join(in.Remove(file), in.downloads.Forget(file))
		if err == nil {
			err = context.Cause(ctx) // a move that has begun meanwhile may have sent the file
		}
		return fault.Wrap(err, fault.StoreFailed, "session.files", "the file could not be removed")
	})
}

func noSuchFile(name string) error {
	return fault.New(fault.FileNotFound, "session.files", "the session has no file %q", name)
}
