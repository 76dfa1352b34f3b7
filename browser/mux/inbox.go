package mux

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/budget"
)

// inbox is the queue of messages for one client, bounded in bytes. If the queue is empty,
// a message first goes to tryWrite.
type inbox struct {
	tryWrite func([]byte) bool // sends without waiting, or returns false; may be nil
	account  *budget.Account   // counts the queued bytes

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
	if nc, ok := conn.(NonblockingConn); ok {
		b.tryWrite = nc.TryWrite
	}
	b.limit, b.wake, b.empty = limit, make(chan struct{}, 1), make(chan struct{})
}

// push adds a message. It returns false if the queue would become too large. A message
// larger than the limit is accepted if the queue is empty.
func (b *inbox) push(msg []byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.finished {
		return true // the client is leaving and does not need it
	}
	if b.bytes == 0 && b.tryWrite != nil && b.tryWrite(msg) {
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

// take waits for the next message. It returns false when there will be none.
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

// wrote records that a taken message of n bytes was written.
func (b *inbox) wrote(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= n
	b.account.Release(n)
	if b.finished && b.bytes == 0 {
		b.settle()
	}
}

// finish accepts no more messages, and drops the queued ones unless drain is set. It
// returns true if messages are still to be written; empty is closed when they are.
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
