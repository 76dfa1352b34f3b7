package session

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/browsers"
)

// FileInfo is one file of a session: a download of its pages, or a file that
// pages may be given.
type FileInfo struct {
	Name    string
	Size    int64 // bytes
	ModTime time.Time
}

// partPrefix marks an upload that is not whole yet.
const partPrefix = ".stasis-part-"

// inFiles opens the files folder of a live session for a call. The folder is
// Chrome's, so nothing in it is trusted: every name is looked up below the
// folder only, links are not followed out of it and only plain files count.
func (s *Service) inFiles(ctx context.Context, c access.Caller, id string, do func(context.Context, *os.Root, int) error) error {
	return s.with(ctx, c, id, access.Drive, func(ctx context.Context, chrome browsers.Chrome) error {
		dir := chrome.Dir()
		run, err := os.OpenRoot(dir.Path)
		if err != nil {
			return fault.Wrap(err, fault.StoreFailed, "session.files", "the session's files cannot be opened")
		}
		defer func() { _ = run.Close() }() // only a handle
		root, err := run.OpenRoot(filepath.Base(dir.Files()))
		if err != nil {
			return fault.Wrap(err, fault.StoreFailed, "session.files", "the session's files cannot be opened")
		}
		defer func() { _ = root.Close() }()
		return do(ctx, root, dir.UID)
	})
}

// ListFiles lists a session's files by name.
func (s *Service) ListFiles(ctx context.Context, c access.Caller, id string) ([]FileInfo, error) {
	files := []FileInfo{}
	err := s.inFiles(ctx, c, id, func(_ context.Context, root *os.Root, _ int) error {
		entries, err := fs.ReadDir(root.FS(), ".")
		if err != nil {
			return fault.Wrap(err, fault.StoreFailed, "session.files", "the session's files cannot be listed")
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(e.Name(), partPrefix) {
				continue // gone meanwhile, or no file
			}
			files = append(files, FileInfo{Name: e.Name(), Size: info.Size(), ModTime: info.ModTime().UTC()})
		}
		return nil
	})
	sort.Slice(files, func(i, j int) bool { return files[i].Name < files[j].Name })
	return files, err
}

// OpenFile opens one file for reading; closing it is the caller's.
func (s *Service) OpenFile(ctx context.Context, c access.Caller, id, name string) (f *os.File, err error) {
	err = s.inFiles(ctx, c, id, func(_ context.Context, root *os.Root, _ int) error {
		// Not blocking: a pipe that somebody put there must not hang the daemon.
		f, err = root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			return noSuchFile(name)
		}
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			_ = f.Close() // nothing was written
			return noSuchFile(name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// PutFile stores what r gives under a name, in place of a file of that name.
// After an error nothing of it is left.
func (s *Service) PutFile(ctx context.Context, c access.Caller, id, name string, r io.Reader) error {
	ctx, leave, err := s.Keys.While(ctx, c)
	if err != nil {
		return err
	}
	defer leave()
	return s.inFiles(ctx, c, id, func(ctx context.Context, root *os.Root, uid int) (err error) {
		part := partPrefix + rand.Text()
		f, err := root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return putFailed(err)
		}
		defer func() {
			if err != nil {
				_ = root.Remove(part) // the first error is the one to tell
			}
		}()
		_, err = io.Copy(f, access.Reader(ctx, r))
		if uid >= 0 && err == nil && os.Geteuid() == 0 {
			err = f.Chown(uid, uid)
		}
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = root.Rename(part, name)
		}
		return putFailed(err)
	})
}

// putFailed gives a failed upload its code; an error of the reader that has
// one already keeps it.
func putFailed(err error) error {
	var known *fault.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.StoreFull, "session.files", "no room for the file")
	default:
		return fault.Wrap(err, fault.StoreFailed, "session.files", "the file could not be stored")
	}
}

// DeleteFile removes one file.
func (s *Service) DeleteFile(ctx context.Context, c access.Caller, id, name string) error {
	return s.inFiles(ctx, c, id, func(_ context.Context, root *os.Root, _ int) error {
		if info, err := root.Lstat(name); err != nil || !info.Mode().IsRegular() {
			return noSuchFile(name)
		}
		return fault.Wrap(root.Remove(name), fault.StoreFailed, "session.files", "the file could not be removed")
	})
}

func noSuchFile(name string) error {
	return fault.New(fault.FileNotFound, "session.files", "the session has no file %q", name)
}
