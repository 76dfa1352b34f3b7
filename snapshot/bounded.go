package snapshot

import (
	"archive/zip"
	"context"
	"io"
)

// maxDirectory limits a zip's directory, in bytes. The directory of 200 000 entries with
// names of 100 bytes takes 30 MB.
const maxDirectory = 64 << 20

// boundedReader fails after a number of bytes, or when its context ends.
type boundedReader struct {
	ctx  context.Context // of the walk that reads
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, irregular("its archive holds more bytes than allowed")
	}
	return n, err
}

// boundedReaderAt fails after a total number of bytes. A negative number means no limit.
type boundedReaderAt struct {
	r    io.ReaderAt
	left int64
	err  error
}

func (b *boundedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if b.left < 0 {
		return b.r.ReadAt(p, off)
	}
	if int64(len(p)) > b.left {
		b.err = irregular("its archive holds more entries than allowed")
		return 0, b.err
	}
	b.left -= int64(len(p))
	return b.r.ReadAt(p, off)
}

// zipBody opens an entry at the first Read, so that skipped entries are not decompressed.
type zipBody struct {
	ctx   context.Context // of the walk that reads
	entry *zip.File
	src   io.ReadCloser
}

func (z *zipBody) Read(p []byte) (int, error) {
	if err := z.ctx.Err(); err != nil {
		return 0, err
	}
	if z.src == nil {
		var err error
		if z.src, err = z.entry.Open(); err != nil {
			return 0, err
		}
	}
	return z.src.Read(p)
}

func (z *zipBody) close() error {
	if z.src == nil {
		return nil
	}
	return z.src.Close()
}
