package mux

import (
	"bytes"
	"io"
)

const (
	readChunk = 64 << 10 // what a pipe holds, so what one read gives at most
	ownFrame  = 32 << 10 // from this size on a frame keeps the buffer it was read into
)

// frames cuts what a pipe gives into messages, each ended by a NUL.
type frames struct {
	r    io.Reader
	buf  []byte // read and not yet returned
	seen int    // how much of buf is known to hold no NUL
}

// next returns the next message without its NUL, in memory of its own, or the
// error of the pipe: io.EOF between messages, io.ErrUnexpectedEOF within one.
func (f *frames) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(f.buf[f.seen:], 0); i >= 0 {
			return f.cut(f.seen + i), nil
		}
		f.seen = len(f.buf)
		if err := f.fill(); err != nil {
			if err == io.EOF && len(f.buf) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}

// cut takes the n bytes before a NUL off the buffer. A small frame is copied,
// so that it does not hold a whole chunk in memory; a large one is handed over
// and the little that follows it is copied instead.
func (f *frames) cut(n int) []byte {
	msg, rest := f.buf[:n:n], f.buf[n+1:]
	f.seen = 0
	if n < ownFrame {
		f.buf = rest
		return bytes.Clone(msg)
	}
	f.buf = append(make([]byte, 0, max(readChunk, len(rest))), rest...)
	return msg
}

func (f *frames) fill() error {
	if cap(f.buf)-len(f.buf) < readChunk/2 {
		grown := make([]byte, len(f.buf), 2*len(f.buf)+readChunk)
		copy(grown, f.buf)
		f.buf = grown
	}
	n, err := f.r.Read(f.buf[len(f.buf):cap(f.buf)])
	f.buf = f.buf[:len(f.buf)+n]
	if n > 0 {
		return nil // the error, if any, comes again
	}
	return err
}
