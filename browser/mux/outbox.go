package mux

import (
	"context"
	"errors"
	"io"
	"sync"
)

// errClosed tells a sender that the pipe is gone.
var errClosed = errors.New("the pipe to Chrome is closed")

// outbox is what waits to be written to Chrome. Every peer has a lane of its
// own and the lanes take turns, one message each, so that a busy client does
// not starve the others.
type outbox struct {
	mu     sync.Mutex
	wake   *sync.Cond
	ring   []*lane // lanes with messages, next one first
	closed bool
	done   chan struct{} // closed with closed
}

// lane is one peer's queue. limit bounds the bytes that send lets in.
type lane struct {
	o     *outbox
	limit int
	queue [][]byte
	bytes int           // of the queue and of the message being written
	space chan struct{} // closed when bytes fell
}

func newOutbox() *outbox {
	o := &outbox{done: make(chan struct{})}
	o.wake = sync.NewCond(&o.mu)
	return o
}

func (o *outbox) lane(limit int) *lane {
	return &lane{o: o, limit: limit, space: make(chan struct{})}
}

// send queues a message; it waits while the lane is full. A message larger
// than the limit goes through an empty lane.
func (l *lane) send(ctx context.Context, msg []byte) error {
	for {
		l.o.mu.Lock()
		if l.o.closed {
			l.o.mu.Unlock()
			return errClosed
		}
		if l.bytes == 0 || l.bytes+len(msg) <= l.limit {
			l.push(msg)
			l.o.mu.Unlock()
			return nil
		}
		space := l.space
		l.o.mu.Unlock()
		select {
		case <-space:
		case <-l.o.done:
			return errClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// post queues a message of the mux's own without waiting.
func (l *lane) post(msg []byte) {
	l.o.mu.Lock()
	defer l.o.mu.Unlock()
	if !l.o.closed {
		l.push(msg)
	}
}

func (l *lane) push(msg []byte) {
	if len(l.queue) == 0 {
		l.o.ring = append(l.o.ring, l)
		l.o.wake.Signal()
	}
	l.queue = append(l.queue, msg)
	l.bytes += len(msg)
}

// drop forgets what the lane still holds: its peer has left.
func (l *lane) drop() {
	l.o.mu.Lock()
	defer l.o.mu.Unlock()
	for i, r := range l.o.ring {
		if r == l {
			l.o.ring = append(l.o.ring[:i:i], l.o.ring[i+1:]...)
			break
		}
	}
	l.queue, l.bytes = nil, 0
}

// run writes the queued messages to w until close or an error of w.
func (o *outbox) run(w io.Writer) error {
	for {
		l, msg := o.take()
		if msg == nil {
			return nil
		}
		if _, err := w.Write(msg); err != nil {
			return err
		}
		o.mu.Lock()
		l.bytes = max(0, l.bytes-len(msg))
		close(l.space)
		l.space = make(chan struct{})
		o.mu.Unlock()
	}
}

func (o *outbox) take() (*lane, []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.ring) == 0 && !o.closed {
		o.wake.Wait()
	}
	if o.closed {
		return nil, nil
	}
	l := o.ring[0]
	o.ring = o.ring[1:]
	msg := l.queue[0]
	l.queue = l.queue[1:]
	if len(l.queue) > 0 {
		o.ring = append(o.ring, l)
	}
	return l, msg
}

// close frees the writer and everyone who waits in send.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		close(o.done)
		o.wake.Broadcast()
	}
}
