package snapshot

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// Foreign is an archive file that another program made. It is a zip, a tar, or a tar
// compressed with gzip or zstd; for a sealed export see [Vault.UnsealUpload]. It is hostile input
// and read under the same rules as an own archive. Its errors are invalid_import.
type Foreign struct {
	file *os.File
	size int64
	walk func(ctx context.Context, limits Limits, take func(*tar.Header, io.Reader) error) error
}

// OpenForeign detects an archive's format from its first bytes. The caller keeps the file
// and closes it after the last use of the Foreign.
func OpenForeign(file *os.File) (*Foreign, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "snapshot.foreign", "")
	}
	f := &Foreign{file: file, size: info.Size()}
	head := make([]byte, 262)
	n, err := file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, fault.Wrap(err, fault.Internal, "snapshot.foreign", "")
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		f.walk = f.walkZip
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		f.walk = f.walkTar(func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) })
	case bytes.HasPrefix(head, zstdMagic):
		f.walk = f.walkTar(format(0).OpenReader)
	case n == 262 && string(head[257:262]) == "ustar":
		f.walk = f.walkTar(func(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(r), nil })
	default:
		return nil, foreign(nil, "the file is not an archive; must be a zip, a tar, a tar.gz, a tar.zst or a sealed tar.zst")
	}
	return f, nil
}

// Names lists the names in the archive, in its order, folders without their slash. Zero
// limits mean the defaults. Folders that names only imply count too, so that an archive
// with too many is refused before anything is written.
func (f *Foreign) Names(ctx context.Context, limits Limits) ([]string, error) {
	limits = limits.orDefault()
	var names []string
	all := tree{listing: listing{limits: limits}, known: map[string]struct{}{".": {}}}
	err := f.walk(ctx, limits, func(h *tar.Header, _ io.Reader) error {
		names = append(names, h.Name)
		return all.add(h.Name)
	})
	return names, f.fail(ctx, err)
}

// Unpack writes the archive to dst as [Vault.Unpack] does. place maps each entry's name
// to the name to write. An entry is skipped, whatever it is, if place returns "".
func (f *Foreign) Unpack(ctx context.Context, dst string, o UnpackOptions, place func(name string) string) (out UnpackResult, err error) {
	o.Limits = o.Limits.orDefault()
	u, err := newUnpacker(dst, o)
	if err != nil {
		return UnpackResult{}, fault.Wrap(err, fault.Internal, "snapshot.foreign", "")
	}
	err = f.walk(ctx, o.Limits, func(h *tar.Header, body io.Reader) error {
		if h.Name = place(h.Name); h.Name == "" {
			return nil
		}
		return u.entry(h, body)
	})
	var disk *localError
	if errors.As(err, &disk) && ctx.Err() == nil {
		err = localFault("to import", disk)
	} else if err = f.fail(ctx, err); err == nil {
		err = localFault("to import", u.finish())
	}
	if err != nil {
		return UnpackResult{}, errors.Join(err, localFault("to import", u.undo()))
	}
	return u.out, nil
}

// maxForeignTar returns the largest allowed size of a tar in bytes, including headers and
// skipped caches.
func maxForeignTar(limits Limits) int64 { return 4*limits.Bytes + 2048*int64(limits.Entries) + 10240 }

func (f *Foreign) walkTar(open func(io.Reader) (io.ReadCloser, error)) func(context.Context, Limits, func(*tar.Header, io.Reader) error) error {
	return func(ctx context.Context, limits Limits, take func(*tar.Header, io.Reader) error) (err error) {
		plain, err := open(bufio.NewReader(io.NewSectionReader(f.file, 0, f.size)))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, plain.Close()) }()
		bounded := &boundedReader{ctx: ctx, r: plain, left: maxForeignTar(limits)}
		t := tar.NewReader(bounded)
		names := listing{limits: limits}
		for {
			h, err := t.Next()
			if err == io.EOF {
				// What follows must be whole too.
				_, err = io.Copy(io.Discard, bounded)
				return err
			}
			if err != nil {
				return err
			}
			if err := takeOne(h, t, &names, take); err != nil {
				return err
			}
		}
	}
}

func (f *Foreign) walkZip(ctx context.Context, limits Limits, take func(*tar.Header, io.Reader) error) error {
	// The directory is read into memory as a whole, so its size is limited.
	directory := &boundedReaderAt{r: f.file, left: maxDirectory}
	z, err := zip.NewReader(directory, f.size)
	if err != nil {
		return errors.Join(err, directory.err)
	}
	directory.left = -1
	names := listing{limits: limits}
	for _, entry := range z.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		if entry.Flags&1 != 0 {
			return irregular("its archive is encrypted")
		}
		h, err := tar.FileInfoHeader(entry.FileInfo(), "")
		if err != nil {
			return irregular("its archive holds something that is neither a file nor a folder")
		}
		h.Name = entry.Name
		body := &zipBody{ctx: ctx, entry: entry}
		if err := errors.Join(takeOne(h, body, &names, take), body.close()); err != nil {
			return err
		}
	}
	return nil
}

// takeOne passes an entry to take if its name is clean after a leading "./" and a
// folder's slash are removed.
func takeOne(h *tar.Header, body io.Reader, names *listing, take func(*tar.Header, io.Reader) error) error {
	if err := names.add(h.Name); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeXGlobalHeader: // git archive writes one; it is not an entry
		return nil
	case tar.TypeDir:
		h.Name = strings.TrimSuffix(h.Name, "/")
	}
	if h.Name = strings.TrimPrefix(h.Name, "./"); h.Name == "." || h.Name == "" && h.Typeflag == tar.TypeDir {
		return nil
	}
	if err := checkName(h.Name); err != nil {
		return errUnclean
	}
	if strings.Count(h.Name, "/") >= MaxDepth {
		return errTooDeep
	}
	return take(h, body)
}

// fail returns the error for what is wrong with the archive.
func (f *Foreign) fail(ctx context.Context, err error) error {
	var what irregular
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fault.Wrap(ctx.Err(), fault.Timeout, "snapshot.foreign", "reading the archive was cancelled")
	case errors.As(err, &what):
		return foreign(err, strings.Replace(string(what), "its archive", "the archive", 1))
	}
	return foreign(err, "the archive is damaged")
}

func foreign(err error, message string) error {
	return &fault.Error{Code: fault.InvalidImport, Op: "snapshot.foreign", Message: message, Err: err}
}
