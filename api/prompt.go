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
	// smallWrite is the size in bytes up to which a write does not wait. Screenshots
	// are larger: writing one takes a while, and copying what is left of it too.
	smallWrite = 32 << 10
	// maxBehind bounds what is written behind. A message is at most smallWrite;
	// the rest is for the answers to pings of a client that reads nothing.
	maxBehind = 2 * smallWrite
)

// errBehind ends a connection whose peer asks for more than it reads.
var errBehind = errors.New("the peer does not read")

// prompt is a connection whose small writes do not wait for the peer: what the
// kernel does not take at once is kept, and written behind by a goroutine that
// Close waits for. Writes come one at a time, as a WebSocket's do. Over TLS, where
// bytes are encrypted on their way, every write waits.
type prompt struct {
	net.Conn
	raw syscall.RawConn // nil over TLS

	mu     sync.Mutex
	rest   []byte        // taken and not yet written
	behind chan struct{} // closed when all is written or nothing more will be; nil when nothing waits
	err    error         // of writing behind, or net.ErrClosed
}

// Write takes all of a small b at once, or writes b as any connection does.
func (p *prompt) Write(b []byte) (int, error) {
	if len(b) > smallWrite || p.raw == nil {
		if err := p.settle(context.Background()); err != nil { // ends with Close
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

// writeNow writes what the kernel has room for. An error shows again in
// writeBehind.
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

// settled says whether nothing waits to be written, so that a small write is not
// going to wait either.
func (p *prompt) settled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.behind == nil && p.raw != nil
}

// settle waits until nothing does.
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

// Close ends the connection and what was to be written behind.
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

// hijack lets a WebSocket be accepted on a prompt connection.
type hijack struct {
	http.ResponseWriter
	conn *prompt
}

// Hijack takes the connection from the server: http.Hijacker.
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
