package mux

import (
	"bytes"
	"io"
	"sync/atomic"

	"github.com/stasisd/stasis/budget"
)

const (
	readChunk = 64 << 10 // what a pipe holds, so the most that one read returns
	ownFrame  = 32 << 10 // from this size on a frame keeps the buffer that it was read into
	// maxFrame bounds a message of Chrome. A screenshot or a PDF has tens of MB.
	maxFrame = 128 << 20
	// countedFrom is the size in bytes from which a frame counts in the budget.
	countedFrom = 1 << 20
	// headSize is how many bytes are kept of a frame that is skipped.
	headSize = 256
)

// frames splits the bytes of a pipe into messages, each ended by a NUL.
type frames struct {
	r    io.Reader
	buf  []byte // read and not yet returned
	seen int    // how many bytes of buf are known to hold no NUL

	limit   int                                // most bytes of a frame; 0: no limit
	open    func(evict func()) *budget.Account // opens the account for large frames; nil: they are not counted
	account *budget.Account                    // nil until the first large frame
	evicted atomic.Bool                        // skip the frame that is being read
	head    []byte                             // the beginning of a frame that is skipped; nil: it is not skipped
}

// next returns the next message without its NUL, in its own memory, or the error of the
// pipe. That is io.EOF between messages and io.ErrUnexpectedEOF within one. If the
// message was too large, whole is false and msg is only its beginning.
func (f *frames) next() (msg []byte, whole bool, err error) {
	for {
		if i := bytes.IndexByte(f.buf[f.seen:], 0); i >= 0 {
			msg, head := f.cut(f.seen+i), f.head
			f.close()
			if head == nil && f.limit > 0 && len(msg) > f.limit {
				head = bytes.Clone(msg[:headSize])
			}
			if head != nil {
				f.head = nil
				return head, false, nil
			}
			return msg, true, nil
		}
		f.seen = len(f.buf)
		f.skipLarge()
		if err := f.fill(); err != nil {
			if err == io.EOF && len(f.buf) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, false, err
		}
	}
}

// skipLarge starts to skip a frame that is too large, or continues to. It drops the bytes
// that were read of the frame.
func (f *frames) skipLarge() {
	switch {
	case f.head != nil:
	case f.limit > 0 && len(f.buf) >= f.limit || !f.grow() || f.evicted.Load():
		f.head = bytes.Clone(f.buf[:min(len(f.buf), headSize)])
		f.close()
		f.buf = make([]byte, 0, readChunk)
	default:
		return
	}
	f.buf, f.seen = f.buf[:0], 0
}

// grow counts the buffer of a large frame in the budget before it grows. It is false if
// the budget has no space.
func (f *frames) grow() bool {
	if f.open == nil || len(f.buf) < countedFrom || f.hasSpace() {
		return true
	}
	if f.account == nil {
		f.evicted.Store(false)
		f.account = f.open(func() { f.evicted.Store(true) })
		if !f.account.Take(cap(f.buf)) {
			return false
		}
	}
	return f.account.Take(f.grown() - cap(f.buf))
}

// close returns the bytes of the finished frame to the budget. From here on the frame
// belongs to its readers.
func (f *frames) close() {
	f.account.Close()
	f.account = nil
	f.evicted.Store(false)
}

// hasSpace reports whether the buffer has space for a read. grown is its size after it has
// grown.
func (f *frames) hasSpace() bool { return cap(f.buf)-len(f.buf) >= readChunk/2 }

func (f *frames) grown() int { return 2*len(f.buf) + readChunk }

// cut removes the n bytes before a NUL from the buffer. It copies a small frame, so that
// the frame does not keep a whole chunk in memory. It hands over the buffer of a large
// frame and copies the few bytes that follow.
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
	if !f.hasSpace() {
		grown := make([]byte, len(f.buf), f.grown())
		copy(grown, f.buf)
		f.buf = grown
	}
	n, err := f.r.Read(f.buf[len(f.buf):cap(f.buf)])
	f.buf = f.buf[:len(f.buf)+n]
	if n > 0 {
		return nil // an error occurs again at the next read
	}
	return err
}
