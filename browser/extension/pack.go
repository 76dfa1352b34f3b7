package extension

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"os"
)

// Pack writes the files of an extension's folder to w as a zip that [Write] accepts. The
// bytes depend only on the files. Errors are those of [Inspect] and of w.
func Pack(ctx context.Context, dir string, w io.Writer) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return storeError(err)
	}
	defer func() { err = errors.Join(err, storeError(root.Close())) }()
	z := zip.NewWriter(w)
	err = walk(ctx, root, func(name string, _ int64) error { return packFile(z, root, name) })
	if err != nil {
		return err
	}
	return storeError(z.Close())
}

func packFile(z *zip.Writer, root *os.Root, name string) error {
	in, err := open(root, name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read from
	out, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	if err == nil {
		_, err = io.Copy(out, in)
	}
	return storeError(err)
}
