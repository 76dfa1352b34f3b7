package mux

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/stasisd/stasis/budget"
)

// errClosed is returned to senders when the pipe has ended.
var errClosed = errors.New("the pipe to Chrome is closed")

// NonblockingWriter is a pipe that can also write without blocking. WriteNow writes as many bytes of
// b as fit at once, which may be none. It is not called during a Write. An error occurs
// again at the next Write.
type NonblockingWriter interface {
	WriteNow(b []byte) (n int)
}

// outbox is the queue of messages to Chrome. Every peer has its own lane. The lanes take
// turns, one message each, so that a busy client does not starve the others. If nothing
// is queued and the pipe is [NonblockingWriter], the sender writes the message itself. Waking
// another goroutine takes longer than everything else that the mux does with a message.
type outbox struct {
	pipe        io.Writer
	nonblocking NonblockingWriter // the pipe, if it implements NonblockingWriter; else nil

	mu          sync.Mutex
	wake        *sync.Cond
	ring        []*lane // lanes with messages, next one first
	partial     []byte  // the rest of a message that was written in part
	partialLane *lane
	writing     bool // run is writing, or about to
	closed      bool
	done        chan struct{} // closed with closed
}

// lane is one peer's queue. limit bounds the bytes that send accepts.
type lane struct {
	o     *outbox
	limit int
	held  *budget.Account // counts the queued bytes; nil for the daemon's own
	queue [][]byte
	bytes int           // of the queue and of the message being written
	space chan struct{} // closed when bytes has decreased
}

func newOutbox(pipe io.Writer) *outbox {
	o := &outbox{pipe: pipe, done: make(chan struct{})}
	o.nonblocking, _ = pipe.(NonblockingWriter)
	o.wake = sync.NewCond(&o.mu)
	return o
}

func (o *outbox) lane(limit int) *lane {
	return &lane{o: o, limit: limit, space: make(chan struct{})}
}

// send queues a message. It waits while the lane is full. A message larger than the limit
// is accepted if the lane is empty.
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

// post queues a message of the mux without waiting.
func (l *lane) post(msg []byte) {
	l.o.mu.Lock()
	defer l.o.mu.Unlock()
	if !l.o.closed {
		l.push(msg)
	}
}

func (l *lane) push(msg []byte) {
	if l.o.nonblocking != nil && !l.o.writing && l.o.partial == nil && len(l.o.ring) == 0 {
		n := l.o.nonblocking.WriteNow(msg)
		if n == len(msg) {
			return
		}
		if n > 0 {
			l.o.partial, l.o.partialLane = msg[n:], l
			l.bytes += len(msg) - n
			l.held.Take(len(msg) - n) // if the budget is exceeded, it closes the client that holds most
			l.o.wake.Signal()
			return
		}
	}
	if len(l.queue) == 0 {
		l.o.ring = append(l.o.ring, l)
		l.o.wake.Signal()
	}
	l.queue = append(l.queue, msg)
	l.bytes += len(msg)
	l.held.Take(len(msg)) // as above
}

// drop discards what the lane still holds, because its peer has disconnected.
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

// run writes queued messages until close or an error of the pipe.
func (o *outbox) run() error {
	for {
		l, msg := o.take()
		if msg == nil {
			return nil
		}
		if _, err := o.pipe.Write(msg); err != nil {
			return err
		}
		o.mu.Lock()
		o.writing = false
		l.bytes = max(0, l.bytes-len(msg))
		l.held.Release(len(msg))
		close(l.space)
		l.space = make(chan struct{})
		o.mu.Unlock()
	}
}

func (o *outbox) take() (*lane, []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.ring) == 0 && o.partial == nil && !o.closed {
		o.wake.Wait()
	}
	if o.closed {
		return nil, nil
	}
	o.writing = true
	if l, msg := o.partialLane, o.partial; msg != nil {
		o.partial, o.partialLane = nil, nil
		return l, msg // Chrome has the beginning already
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

// close ends the writer and releases every sender that waits in send.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		close(o.done)
		o.wake.Broadcast()
	}
}
