package mux

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/budget"
)

// inbox is what waits for one client, bounded in bytes. Where nothing waits, a
// message goes to the client by offer, if that takes it.
type inbox struct {
	offer   func([]byte) bool // sends without waiting, or says false; may be nil
	account *budget.Account   // what waits is counted in

	mu       sync.Mutex
	limit    int
	queue    [][]byte
	bytes    int // of the queue and of the message being written
	finished bool
	wake     chan struct{}
	empty    chan struct{} // closed when finished and nothing waits
}

func (b *inbox) init(conn Conn, limit int, a *budget.Account) {
	b.account = a
	if eager, ok := conn.(Eager); ok {
		b.offer = eager.Offer
	}
	b.limit, b.wake, b.empty = limit, make(chan struct{}, 1), make(chan struct{})
}

// push adds a message. It is false when that would be too much; a message
// larger than the limit passes when nothing else waits.
func (b *inbox) push(msg []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.finished {
		return true // the client is leaving; nobody misses it
	}
	if b.bytes == 0 && b.offer != nil && b.offer(msg) {
		return true
	}
	if b.bytes > 0 && b.bytes+len(msg) > b.limit || !b.account.Take(len(msg)) {
		return false
	}
	b.queue = append(b.queue, msg)
	b.bytes += len(msg)
	b.signal()
	return true
}

// take waits for the next message; false when there will be none.
func (b *inbox) take(ctx context.Context) ([]byte, bool) {
	for {
		b.mu.Lock()
		if len(b.queue) > 0 {
			msg := b.queue[0]
			b.queue[0] = nil
			b.queue = b.queue[1:]
			b.mu.Unlock()
			return msg, true
		}
		finished := b.finished
		b.mu.Unlock()
		if finished {
			return nil, false
		}
		select {
		case <-b.wake:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// wrote says that a taken message of n bytes has left.
func (b *inbox) wrote(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= n
	b.account.Give(n)
	if b.finished && b.bytes == 0 {
		b.settle()
	}
}

// finish takes no more messages, and drops those that wait unless drain is
// set. It is true when there is something to wait for, until empty is closed.
func (b *inbox) finish(drain bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.finished = true
	if !drain {
		b.queue, b.bytes = nil, 0
	}
	b.signal()
	if b.bytes == 0 {
		b.settle()
		return false
	}
	return true
}

func (b *inbox) settle() {
	select {
	case <-b.empty:
	default:
		close(b.empty)
	}
}

func (b *inbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}
