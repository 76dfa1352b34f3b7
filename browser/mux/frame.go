package mux

import (
	"bytes"
	"io"
	"sync/atomic"

	"github.com/stasisd/stasis/budget"
)

const (
	readChunk = 64 << 10 // what a pipe holds, so what one read gives at most
	ownFrame  = 32 << 10 // from this size on a frame keeps the buffer it was read into
	// maxFrame bounds a message of Chrome's: a screenshot or a PDF has tens of MB.
	maxFrame = 128 << 20
	// counted is from how many bytes on a frame counts in the budget.
	counted = 1 << 20
	// headSize is what is kept of a frame that is passed over.
	headSize = 256
)

// frames cuts what a pipe gives into messages, each ended by a NUL.
type frames struct {
	r    io.Reader
	buf  []byte // read and not yet returned
	seen int    // how much of buf is known to hold no NUL

	limit   int                                // bytes of a frame; 0: none
	open    func(evict func()) *budget.Account // what large frames are counted in; nil: they are not
	account *budget.Account                    // nil until the first large frame
	evicted atomic.Bool                        // the frame that is being read is to be passed over
	head    []byte                             // of a frame that is passed over; nil: it is not
}

// next returns the next message without its NUL, in memory of its own, or the
// error of the pipe: io.EOF between messages, io.ErrUnexpectedEOF within one.
// whole is false of a message that was too large, which is its beginning alone.
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
		f.bound()
		if err := f.fill(); err != nil {
			if err == io.EOF && len(f.buf) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, false, err
		}
	}
}

// bound begins to pass over a frame that is too large, and goes on with it: what
// was read of it is dropped.
func (f *frames) bound() {
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

// grow counts the buffer of a large frame before it grows.
func (f *frames) grow() bool {
	if f.open == nil || len(f.buf) < counted || f.roomy() {
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

// close gives back what the frame that was read counted for: it is its readers' now.
func (f *frames) close() {
	f.account.Close()
	f.account = nil
	f.evicted.Store(false)
}

// roomy reports whether the buffer has room for a read; grown is its size where
// it has to grow.
func (f *frames) roomy() bool { return cap(f.buf)-len(f.buf) >= readChunk/2 }

func (f *frames) grown() int { return 2*len(f.buf) + readChunk }

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
	if !f.roomy() {
		grown := make([]byte, len(f.buf), f.grown())
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
