package extension

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
)

// metadata is the folder that Chrome creates in an extension's folder, for the indexed
// rules of declarativeNetRequest. It is not part of the extension, and Chrome rejects an
// extension that contains one.
const metadata = "_metadata"

// Inspect reads an extension's folder, up to the limits of an upload, because Chrome may
// have filled it. The SHA256 covers the names and bytes of all its files, whatever
// archive they came in. It does not cover files that Chrome wrote into the folder.
// Errors: invalid_extension and too_large as for [Write], store_failed, and ctx's error.
func Inspect(ctx context.Context, dir string) (info Info, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Info{}, storeError(err)
	}
	defer func() { err = errors.Join(err, storeError(root.Close())) }()
	sum := sha256.New()
	err = walk(ctx, root, func(name string, size int64) error {
		info.Size += size
		return hashFile(sum, root, name)
	})
	if err != nil {
		return Info{}, err
	}
	read := func(name string, limit int64) ([]byte, error) { return readFile(root, name, limit) }
	raw, err := read(manifestName, maxManifest)
	if err != nil {
		return Info{}, unreadable(manifestName, err)
	}
	m, err := parseManifest(raw)
	if err != nil {
		return Info{}, err
	}
	if m.key == nil {
		return Info{}, invalid("manifest.json: key is missing")
	}
	m.localize(read)
	info.ID, info.Name, info.Version = idOf(m.key), m.name, m.version
	info.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return info, nil
}

// walk calls each with the files of an extension in order. Chrome may have used the
// folder. So anything except files and folders is invalid_extension, more than an upload
// may have is too_large, and links are not followed.
func walk(ctx context.Context, root *os.Root, each func(name string, size int64) error) error {
	w := walker{root: root, each: each}
	return w.folder(ctx, ".")
}

type walker struct {
	root    *os.Root
	each    func(name string, size int64) error
	entries int   // files and folders so far
	bytes   int64 // of the files so far
}

func (w *walker) folder(ctx context.Context, dir string) error {
	entries, err := w.list(dir)
	if err != nil {
		return err
	}
	for _, d := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := path.Join(dir, d.Name())
		switch {
		case name == metadata && d.IsDir():
		case len(name) > maxName:
			return invalid("the name %q is longer than %d bytes", shorten(name), maxName)
		case d.IsDir():
			err = w.folder(ctx, name)
		case d.Type().IsRegular():
			err = w.file(name, d)
		default:
			return invalid("%q is neither a file nor a folder", shorten(name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// list reads a folder in the order of names, but no more entries than are allowed.
func (w *walker) list(dir string) ([]fs.DirEntry, error) {
	f, err := w.root.OpenFile(dir, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, storeError(err)
	}
	defer func() { _ = f.Close() }() // only read from
	entries, err := f.ReadDir(maxFiles + 1 - w.entries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, storeError(err)
	}
	if w.entries += len(entries); w.entries > maxFiles {
		return nil, tooLarge("the extension has more than %d files and folders", maxFiles)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func (w *walker) file(name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return storeError(err)
	}
	if w.bytes += info.Size(); info.Size() > maxFile || w.bytes > maxBytes {
		return tooBig()
	}
	return w.each(name, info.Size())
}

// open opens a regular file for reading. A named pipe in its place would never end.
func open(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, storeError(err)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		return f, nil
	}
	_ = f.Close() // nothing was written
	return nil, errors.Join(storeError(err), invalid("%q is neither a file nor a folder", shorten(name)))
}

func readFile(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := open(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read from
	body, err := io.ReadAll(io.LimitReader(f, limit+1))
	if int64(len(body)) > limit {
		return nil, tooLarge("%s has more than %d bytes", name, limit)
	}
	return body, storeError(err)
}

// hashFile adds a file to the sum: its name and its content, preceded by their lengths,
// so that no two folders give the same stream.
func hashFile(sum hash.Hash, root *os.Root, name string) error {
	f, err := open(root, name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	content := sha256.New()
	n, err := io.Copy(content, io.LimitReader(f, maxFile+1)) // it may have grown
	if err != nil {
		return storeError(err)
	}
	if n > maxFile {
		return tooBig()
	}
	var lengths [16]byte
	binary.BigEndian.PutUint64(lengths[:8], uint64(len(name)))
	binary.BigEndian.PutUint64(lengths[8:], uint64(n))
	sum.Write(lengths[:])
	sum.Write([]byte(name))
	sum.Write(content.Sum(nil))
	return nil
}

// Copy copies an extension's files into a new folder.
func Copy(ctx context.Context, from, to string) (err error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return storeError(err)
	}
	src, err := os.OpenRoot(from)
	if err != nil {
		return storeError(err)
	}
	defer func() { err = errors.Join(err, storeError(src.Close())) }()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return storeError(err)
	}
	defer func() { err = errors.Join(err, storeError(dst.Close())) }()
	return walk(ctx, src, func(name string, _ int64) error { return copyFile(src, dst, name) })
}

func copyFile(src, dst *os.Root, name string) error {
	in, err := open(src, name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read from
	if above := path.Dir(name); above != "." {
		if err := dst.MkdirAll(above, 0o700); err != nil {
			return storeError(err)
		}
	}
	out, err := dst.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return storeError(err)
	}
	_, err = io.Copy(out, in)
	return storeError(errors.Join(err, out.Close()))
}
