package extension

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// metadata is the folder that Chrome writes into an extension's own: the
// indexed rules of declarativeNetRequest. It is no part of the extension, and
// Chrome refuses an extension that brings one.
const metadata = "_metadata"

// Inspect reads an extension's folder. Its SHA256 is that of all its files,
// names and bytes, whatever archive they came in; what Chrome wrote into the
// folder itself does not count.
func Inspect(dir string) (info Info, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Info{}, stored(err)
	}
	defer func() { err = errors.Join(err, stored(root.Close())) }()
	sum := sha256.New()
	err = walk(root, func(name string, size int64) error {
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

// walk gives the files of an extension in order. A Chrome may have lived in
// the folder: what is neither a file nor a folder is invalid_extension, and
// links are not followed.
func walk(root *os.Root, each func(name string, size int64) error) error {
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return stored(err)
		case name == metadata && d.IsDir():
			return fs.SkipDir
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return invalid("%q is neither a file nor a folder", shorten(name))
		}
		info, err := d.Info()
		if err != nil {
			return stored(err)
		}
		return each(name, info.Size())
	})
}

func open(root *os.Root, name string) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	return f, stored(err)
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
	return body, stored(err)
}

// hashFile adds a file to the sum: its name and its bytes, each with its
// length before it, so that no two folders give the same stream.
func hashFile(sum hash.Hash, root *os.Root, name string) error {
	f, err := open(root, name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read from
	content := sha256.New()
	n, err := io.Copy(content, f)
	if err != nil {
		return stored(err)
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
func Copy(from, to string) (err error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return stored(err)
	}
	src, err := os.OpenRoot(from)
	if err != nil {
		return stored(err)
	}
	defer func() { err = errors.Join(err, stored(src.Close())) }()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return stored(err)
	}
	defer func() { err = errors.Join(err, stored(dst.Close())) }()
	return walk(src, func(name string, _ int64) error { return copyFile(src, dst, name) })
}

func copyFile(src, dst *os.Root, name string) error {
	in, err := open(src, name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read from
	if above := path.Dir(name); above != "." {
		if err := dst.MkdirAll(above, 0o700); err != nil {
			return stored(err)
		}
	}
	out, err := dst.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return stored(err)
	}
	_, err = io.Copy(out, in)
	return stored(errors.Join(err, out.Close()))
}
