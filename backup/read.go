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

// Verify reads a whole backup and writes nothing. Errors: config if there is no backup,
// archive_damaged, which names the file, and unsupported for a newer format.
func Verify(ctx context.Context, source string) (Manifest, error) {
	return readFiles(ctx, source, nil)
}

// readFiles reads a backup. The files must be exactly those that the manifest lists. keep
// gets each file before it is known whether the file is undamaged. After an error the
// caller must undo what keep did.
func readFiles(ctx context.Context, source string, keep func(path string, r io.Reader) error) (Manifest, error) {
	info, err := os.Stat(source)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, fault.New(fault.Config, "backup.read", "the backup %s does not exist", source)
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
	left map[string]File // files of the manifest that have not been read yet
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
		return fault.New(fault.Config, "backup.read", "%s is not a backup: it has no %s", source, ManifestFile)
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
			return damaged(path, "is not a regular file", nil)
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

// file checks one file of the backup and passes it to keep.
func (r *reader) file(path string, size int64, body io.Reader) error {
	want, known := r.left[path]
	if !known {
		return damaged(path, "is not in its manifest", nil)
	}
	delete(r.left, path)
	if size != want.Size {
		return damaged(path, "does not have the length that its manifest lists", nil)
	}
	sum := sha256.New()
	in := &errorRecorder{r: io.TeeReader(withProgress(r.ctx, body), sum)}
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
		return damaged(path, "does not have the hash that its manifest lists", nil)
	}
	return nil
}

// errorRecorder keeps its read error, so that callers can distinguish the error from a failure of keep to
// write.
type errorRecorder struct {
	r   io.Reader
	err error
}

func (n *errorRecorder) Read(p []byte) (int, error) {
	read, err := n.r.Read(p)
	if err != nil && err != io.EOF {
		n.err = err
	}
	return read, err
}
