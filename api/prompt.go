package api

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"syscall"
)

const (
	// smallWrite is the size in bytes up to which a write does not block. Screenshots are
	// larger: writing one takes long, and so does copying the rest of it.
	smallWrite = 32 << 10
	// maxBehind limits the queue of a connection, in bytes. A message has at most
	// smallWrite; the rest is for pongs to a client that reads nothing.
	maxBehind = 2 * smallWrite
)

// errBehind closes a connection whose peer requests more than it reads.
var errBehind = errors.New("the peer does not read")

// prompt is a connection whose small writes do not block. What the kernel does not accept
// at once is queued, and a goroutine writes it. Close waits for that goroutine. Writes must
// not be concurrent; those of a WebSocket are not. Over TLS every write blocks, because
// bytes are encrypted on the way.
type prompt struct {
	net.Conn
	raw syscall.RawConn // nil over TLS

	mu     sync.Mutex
	rest   []byte        // accepted and not yet written
	behind chan struct{} // closed when rest is written or writing has failed; nil while nothing is queued
	err    error         // of the writing goroutine, or net.ErrClosed
}

// Write accepts all of a small b at once. A larger b it writes as any connection does.
func (p *prompt) Write(b []byte) (int, error) {
	if len(b) > smallWrite || p.raw == nil {
		if err := p.settle(context.Background()); err != nil { // Close ends this wait
			return 0, err
		}
		return p.Conn.Write(b)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return 0, p.err
	case p.behind != nil:
		if len(p.rest)+len(b) > maxBehind {
			return 0, errBehind
		}
		p.rest = append(p.rest, b...)
		return len(b), nil
	}
	if n := p.writeNow(b); n < len(b) {
		p.rest = append(p.rest, b[n:]...)
		p.behind = make(chan struct{})
		go p.writeBehind(p.behind)
	}
	return len(b), nil
}

// writeNow writes what the kernel accepts at once. writeBehind meets an error again.
func (p *prompt) writeNow(b []byte) (n int) {
	_ = p.raw.Write(func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), b)
		return true
	})
	return max(0, n)
}

func (p *prompt) writeBehind(done chan struct{}) {
	defer close(done)
	for {
		p.mu.Lock()
		b := p.rest
		p.rest = nil
		if len(b) == 0 || p.err != nil {
			p.behind = nil
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

// settled reports whether nothing is queued. Then a small write does not block.
func (p *prompt) settled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.behind == nil && p.raw != nil
}

// settle waits until nothing is queued.
func (p *prompt) settle(ctx context.Context) error {
	p.mu.Lock()
	behind := p.behind
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
func (p *prompt) Close() error {
	p.mu.Lock()
	if p.err == nil {
		p.err = net.ErrClosed
	}
	behind := p.behind
	p.mu.Unlock()
	err := p.Conn.Close()
	if behind != nil {
		<-behind
	}
	return err
}

// hijack is a ResponseWriter that lets a WebSocket be accepted on a prompt connection.
type hijack struct {
	http.ResponseWriter
	conn *prompt
}

// Hijack implements [http.Hijacker]: it takes the connection from the server.
func (h *hijack) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = &prompt{Conn: conn}
	if tcp, ok := conn.(syscall.Conn); ok { // not TLS
		if h.conn.raw, err = tcp.SyscallConn(); err != nil {
			return nil, nil, errors.Join(err, conn.Close())
		}
	}
	buffers.Writer.Reset(h.conn)
	return h.conn, buffers, nil
}
