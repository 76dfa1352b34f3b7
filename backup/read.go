package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stasisd/stasis/fault"
)

// Verify reads a backup whole and writes nothing. Errors: config where there is
// none, archive_damaged, which names the file that is wrong, and unsupported for one
// of a newer format.
func Verify(ctx context.Context, source string) (Manifest, error) {
	return readFiles(ctx, source, nil)
}

// readFiles goes through a backup: each file must be the one that the manifest names,
// and none may be missing or too many. With keep, each is given to that before
// it is known whether it is whole: an error afterwards takes all back.
func readFiles(ctx context.Context, source string, keep func(path string, r io.Reader) error) (Manifest, error) {
	info, err := os.Stat(source)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, fault.New(fault.Config, "backup.read", "there is no %s", source)
	}
	if err != nil {
		return Manifest{}, diskFault("backup.read", err)
	}
	r := reader{ctx: ctx, keep: keep, left: map[string]File{}}
	if info.IsDir() {
		err = r.folder(source)
	} else {
		err = unpack(ctx, source, r.begin, r.file)
	}
	if err != nil {
		return Manifest{}, diskFault("backup.read", err)
	}
	for _, f := range r.m.Files {
		if _, missing := r.left[f.Path]; missing {
			return Manifest{}, damaged(f.Path, "is missing", nil)
		}
	}
	return r.m, nil
}

// reader is one pass over a backup.
type reader struct {
	ctx  context.Context
	keep func(path string, r io.Reader) error
	m    Manifest
	left map[string]File // of the manifest, not come yet
}

func (r *reader) begin(m Manifest) error {
	r.m = m
	for _, f := range m.Files {
		r.left[f.Path] = f
	}
	return nil
}

func (r *reader) folder(source string) error {
	root, err := os.OpenRoot(source)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // only a handle
	manifest, err := root.Open(ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Config, "backup.read", "%s is no backup: it has no %s", source, ManifestFile)
	}
	if err != nil {
		return err
	}
	m, err := Parse(manifest)
	if err := errors.Join(err, manifest.Close()); err != nil {
		return err
	}
	if err := r.begin(m); err != nil {
		return err
	}
	return fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() || path == ManifestFile:
			return nil
		case !entry.Type().IsRegular():
			return damaged(path, "is no file", nil)
		}
		f, err := root.Open(filepath.FromSlash(path))
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // it is only read
		info, err := f.Stat()
		if err != nil {
			return err
		}
		return r.file(path, info.Size(), f)
	})
}

// file takes one file of the backup.
func (r *reader) file(path string, size int64, body io.Reader) error {
	want, known := r.left[path]
	if !known {
		return damaged(path, "is not in its manifest", nil)
	}
	delete(r.left, path)
	if size != want.Size {
		return damaged(path, "does not have the length that its manifest says", nil)
	}
	sum := sha256.New()
	in := &noting{r: io.TeeReader(under(r.ctx, body), sum)}
	var err error
	if r.keep != nil {
		err = r.keep(path, in)
	} else {
		_, err = io.Copy(io.Discard, in)
	}
	switch {
	case in.err != nil && r.ctx.Err() == nil:
		return damaged(path, "cannot be read", in.err)
	case err != nil:
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != want.SHA256 {
		return damaged(path, "does not have the hash that its manifest says", nil)
	}
	return nil
}

// noting remembers why a reader failed, so that this is told from the failure of
// who writes what it read.
type noting struct {
	r   io.Reader
	err error
}

func (n *noting) Read(p []byte) (int, error) {
	read, err := n.r.Read(p)
	if err != nil && err != io.EOF {
		n.err = err
	}
	return read, err
}
