package extension

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/stasisd/stasis/fault"
)

// write writes the files below dir, with the given manifest.
func (f files) write(dir string, manifest []byte) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return storeError(err)
	}
	defer func() { err = errors.Join(err, storeError(root.Close())) }()
	names := make([]string, 0, len(f))
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if above := path.Dir(name); above != "." {
			if err := root.MkdirAll(above, 0o700); err != nil {
				return storeError(err)
			}
		}
		if name == manifestName {
			err = writeFile(root, name, bytes.NewReader(manifest))
		} else {
			err = f.writeOne(root, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f files) writeOne(root *os.Root, name string) error {
	r, err := f[name].Open() // reading fails if the size or checksum is wrong
	if err != nil {
		return unreadable(name, err)
	}
	return errors.Join(writeFile(root, name, r), r.Close())
}

func writeFile(root *os.Root, name string, r io.Reader) error {
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return storeError(err)
	}
	_, err = io.Copy(diskWriter{out}, r)
	var disk *fault.Error
	if err != nil && !errors.As(err, &disk) {
		err = unreadable(name, err)
	}
	if err == nil {
		err = storeError(out.Sync())
	}
	return errors.Join(err, storeError(out.Close()))
}

// diskWriter marks errors of the disk, to distinguish them from errors of the reader.
type diskWriter struct{ f *os.File }

func (d diskWriter) Write(p []byte) (int, error) {
	n, err := d.f.Write(p)
	return n, storeError(err)
}

// storeError adds the error code to an error of the disk.
func storeError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fault.Wrap(err, fault.StoreFull, "extension.store", "the disk has no space for the extension")
	}
	return fault.Wrap(err, fault.StoreFailed, "extension.store", "the extension could not be stored")
}
