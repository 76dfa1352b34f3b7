package backup

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// maxWindow limits the memory that a zstd frame can require, in bytes.
const maxWindow = 64 << 20

// pack writes a backup's folder as one tar.zst file, the manifest first.
func pack(ctx context.Context, name, dir string, m Manifest) (err error) {
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	// The archives are compressed and sealed already, so the fastest level suffices.
	z, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20))
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range append([]File{{Path: ManifestFile}}, m.Files...) {
		if err := packOne(ctx, t, dir, f.Path, m); err != nil {
			return err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return err
	}
	return out.Sync()
}

func packOne(ctx context.Context, t *tar.Writer, dir, path string, m Manifest) (err error) {
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(path)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Size: info.Size(), Mode: fileMode, ModTime: m.CreatedAt, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = io.Copy(t, withProgress(ctx, f))
	return err
}

// unpack reads a backup that is one file. It calls manifest first, then each for every file
// in the order of the archive.
func unpack(ctx context.Context, name string, manifest func(Manifest) error, each func(path string, size int64, r io.Reader) error) (err error) {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	z, err := zstd.NewReader(withContext(ctx, in), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return err
	}
	defer z.Close()
	t := tar.NewReader(z)
	for first := true; ; first = false {
		head, err := t.Next()
		switch {
		case err == io.EOF && !first:
			_, err := io.Copy(io.Discard, z) // reads to the end of the stream, which checks its checksum
			return damageUnlessCancelled(ctx, filepath.Base(name), err)
		case err != nil:
			return damageUnlessCancelled(ctx, filepath.Base(name), err)
		case head.Typeflag != tar.TypeReg:
			return damaged(head.Name, "is not a regular file", nil)
		case first && head.Name != ManifestFile:
			return damaged(filepath.Base(name), "does not begin with its manifest", nil)
		case first:
			m, err := Parse(t)
			if err != nil {
				return err
			}
			if err := manifest(m); err != nil {
				return err
			}
		default:
			if err := each(head.Name, head.Size, t); err != nil {
				return err
			}
		}
	}
}

// damageUnlessCancelled reports a read error as damage, unless the caller cancelled.
func damageUnlessCancelled(ctx context.Context, name string, err error) error {
	if err == nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	return damaged(name, "cannot be unpacked", err)
}
