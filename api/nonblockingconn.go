package api

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// smallWrite is the size in bytes up to which a write does not block. Screenshots are
	// larger: writing one takes long, and so does copying the rest of it.
	smallWrite = 32 << 10
	// maxQueued limits the queue of a connection, in bytes. A message has at most
	// smallWrite; the rest is for pongs to a client that reads nothing.
	maxQueued = 2 * smallWrite
)

// errQueueFull closes a connection whose peer requests more than it reads.
var errQueueFull = errors.New("the peer does not read")

// nonblockingConn is a connection whose small writes do not block. What the kernel does not accept
// at once is queued, and a goroutine writes it. Close waits for that goroutine. Writes must
// not be concurrent; those of a WebSocket are not. Over TLS every write blocks, because
// bytes are encrypted on the way.
type nonblockingConn struct {
	net.Conn
	raw syscall.RawConn // nil over TLS

	arriving atomic.Pointer[arrival] // nil between messages

	mu      sync.Mutex
	queue   []byte        // accepted and not yet written
	writing chan struct{} // closed when the queue is written or writing has failed; nil while nothing is queued
	err     error         // of the writing goroutine, or net.ErrClosed
}

// arrival is a message that has begun to arrive.
type arrival struct {
	pace    pace
	tooSlow func() // called when the client falls below the pace
}

// Read reads from the peer. While a message arrives, the peer must keep up its pace. The
// timer is here, where a read may wait: most messages arrive in one piece, and a timer for
// each would wake another thread.
func (p *nonblockingConn) Read(b []byte) (int, error) {
	a := p.arriving.Load()
	if a == nil {
		return p.Conn.Read(b)
	}
	late := time.AfterFunc(a.pace.most-a.pace.spent, a.tooSlow)
	defer late.Stop()
	since := a.pace.now()
	n, err := p.Conn.Read(b)
	a.pace.moved(since, n)
	return n, err
}

// Write accepts all of a small b at once. A larger b it writes as any connection does.
func (p *nonblockingConn) Write(b []byte) (int, error) {
	if len(b) > smallWrite || p.raw == nil {
		if err := p.waitIdle(context.Background()); err != nil { // Close ends this wait
			return 0, err
		}
		return p.Conn.Write(b)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return 0, p.err
	case p.writing != nil:
		if len(p.queue)+len(b) > maxQueued {
			return 0, errQueueFull
		}
		p.queue = append(p.queue, b...)
		return len(b), nil
	}
	if n := p.writeNow(b); n < len(b) {
		p.queue = append(p.queue, b[n:]...)
		p.writing = make(chan struct{})
		go p.writeQueue(p.writing)
	}
	return len(b), nil
}

// writeNow writes what the kernel accepts at once. writeQueue meets an error again.
func (p *nonblockingConn) writeNow(b []byte) (n int) {
	_ = p.raw.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), b)
		return true
	})
	return max(0, n)
}

func (p *nonblockingConn) writeQueue(done chan struct{}) {
	defer close(done)
	for {
		p.mu.Lock()
		b := p.queue
		p.queue = nil
		if len(b) == 0 || p.err != nil {
			p.writing = nil
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		if _, err := p.Conn.Write(b); err != nil {
			p.mu.Lock()
			p.err = errors.Join(p.err, err)
			p.mu.Unlock()
		}
	}
}

// idle reports whether nothing is queued. Then a small write does not block.
func (p *nonblockingConn) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.writing == nil && p.raw != nil
}

// waitIdle waits until nothing is queued.
func (p *nonblockingConn) waitIdle(ctx context.Context) error {
	p.mu.Lock()
	behind := p.writing
	p.mu.Unlock()
	if behind != nil {
		select {
		case <-behind:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Close closes the connection and discards what is queued.
func (p *nonblockingConn) Close() error {
	p.mu.Lock()
	if p.err == nil {
		p.err = net.ErrClosed
	}
	behind := p.writing
	p.mu.Unlock()
	err := p.Conn.Close()
	if behind != nil {
		<-behind
	}
	return err
}

// hijackWriter is a ResponseWriter that lets a WebSocket be accepted on a nonblockingConn.
type hijackWriter struct {
	http.ResponseWriter
	conn *nonblockingConn
}

// Hijack implements [http.Hijacker]: it takes the connection from the server.
func (h *hijackWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = &nonblockingConn{Conn: conn}
	if tcp, ok := conn.(syscall.Conn); ok { // not TLS
		if h.conn.raw, err = tcp.SyscallConn(); err != nil {
			return nil, nil, errors.Join(err, conn.Close())
		}
	}
	buffers.Writer.Reset(h.conn)
	return h.conn, buffers, nil
}
