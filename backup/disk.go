package backup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/stasisd/stasis/fault"
)

// diskFault makes a fault of an error of the file system. A fault is returned unchanged.
func diskFault(op string, err error) error {
	var known *fault.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fault.Wrap(err, fault.StoreFull, op, "the disk is full; nothing was kept")
	case errors.Is(err, context.Canceled):
		return fault.Wrap(err, fault.Timeout, op, "the operation was cancelled; nothing was kept")
	}
	return fault.Wrap(err, fault.StoreFailed, op, "a file or folder cannot be read or written; nothing was kept")
}

// progressKey is the key of what WithProgress adds to a context.
type progressKey struct{}

// WithProgress returns a context with which Commit, Verify and Restore call progress after each
// read of a file's content, with the number of bytes.
func WithProgress(ctx context.Context, progress func(bytes int)) context.Context {
	return context.WithValue(ctx, progressKey{}, progress)
}

// withContext returns a reader of r that fails when ctx has ended.
func withContext(ctx context.Context, r io.Reader) io.Reader { return &contextReader{ctx: ctx, r: r} }

// withProgress is withContext for the content of a file. It also calls the progress of ctx.
func withProgress(ctx context.Context, r io.Reader) io.Reader {
	progress, _ := ctx.Value(progressKey{}).(func(int))
	return &contextReader{ctx, r, progress}
}

type contextReader struct {
	ctx      context.Context
	r        io.Reader
	progress func(bytes int) // may be nil
}

func (b *contextReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.r.Read(p)
	if b.progress != nil {
		b.progress(n)
	}
	return n, err
}

// writeFile creates a new file and makes it durable.
func writeFile(root *os.Root, name string, r io.Reader) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncFolders makes the names in a folder and all folders below it durable.
func syncFolders(root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		dir, err := root.Open(filepath.FromSlash(name))
		if err != nil {
			return err
		}
		return errors.Join(dir.Sync(), dir.Close())
	})
}

// private reports whether a folder belongs to this process's user and no other user may
// write in it.
func private(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}

func syncFolder(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
