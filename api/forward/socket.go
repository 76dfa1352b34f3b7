package forward

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"github.com/coder/websocket"
)

const (
	// streamType is the media type of answers without an end.
	streamType = "text/event-stream"
	// restartPatience is how long a client that was closed with 1012 may take to answer that.
	restartPatience = 5 * time.Second
	// maxFrameHeader is the size in bytes of the longest header of a frame (RFC 6455, 5.2).
	maxFrameHeader = 14
)

// frames finds the ends of frames in a stream of WebSocket frames (RFC 6455, 5.2). The zero value
// is at the beginning of one.
type frames struct {
	header [maxFrameHeader]byte
	have   int    // bytes of the header that have arrived
	left   uint64 // bytes of the payload that have not
}

// between reports whether no frame has begun that has not ended.
func (f *frames) between() bool { return f.have == 0 && f.left == 0 }

// next returns how many of the bytes p, which is not empty, belong to the frame that has begun, or
// begins.
func (f *frames) next(p []byte) (n int) {
	for f.left == 0 && n < len(p) {
		f.header[f.have] = p[n]
		f.have++
		n++
		size, known := headerSize(f.header[:f.have])
		if !known || f.have < size {
			continue
		}
		f.left, f.have = payloadSize(f.header[:size]), 0
		if f.left == 0 {
			return n
		}
	}
	rest := min(f.left, uint64(len(p)-n))
	f.left -= rest
	return n + int(rest) //nolint:gosec // at most len(p)
}

// headerSize returns the size of a header of which the first bytes are known.
func headerSize(h []byte) (size int, known bool) {
	if len(h) < 2 {
		return 0, false
	}
	size = 2
	switch h[1] & 0x7f {
	case 126:
		size += 2
	case 127:
		size += 8
	}
	if h[1]&0x80 != 0 {
		size += 4 // the mask
	}
	return size, true
}

// payloadSize returns the size of the payload that a whole header names.
func payloadSize(h []byte) uint64 {
	switch n := h[1] & 0x7f; n {
	case 126:
		return uint64(binary.BigEndian.Uint16(h[2:]))
	case 127:
		return binary.BigEndian.Uint64(h[2:])
	default:
		return uint64(n)
	}
}

// clientSocket is the connection to the client of a WebSocket that is passed on. The frames of the
// other node are written to it as they are, until restart.
type clientSocket struct {
	net.Conn

	mu         sync.Mutex
	open       bool // the answer to the upgrade was written
	frames     frames
	restarting bool // the close frame follows the frame that has begun
	restarted  bool // the client was closed; nothing follows
}

// Write writes what comes from the other node.
func (c *clientSocket) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	written := 0
	for written < len(p) {
		if c.restarting && c.frames.between() {
			return len(p), c.closeRestarting()
		}
		n := len(p) - written
		before := c.frames
		if c.restarting {
			n = c.frames.next(p[written:])
		} else {
			c.follow(p[written:])
		}
		if m, err := c.Conn.Write(p[written : written+n]); err != nil {
			c.frames = before
			return written + m, err
		}
		written += n
	}
	if c.restarting && c.frames.between() {
		return len(p), c.closeRestarting()
	}
	return len(p), nil
}

// follow follows all frames of p.
func (c *clientSocket) follow(p []byte) {
	for len(p) > 0 {
		p = p[c.frames.next(p):]
	}
}

// restart closes the client with 1012, after the frame that has begun. If the client does not
// answer that in time, its connection is cut off.
func (c *clientSocket) restart() {
	time.AfterFunc(restartPatience, func() { _ = c.Close() }) // it may be closed already
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restarting = true
	if c.open && c.frames.between() {
		_ = c.closeRestarting() // a client that is gone cannot be closed
	}
}

// CloseWrite says to the client that nothing follows. Close would discard what the client has not
// received yet, if it sends meanwhile.
func (c *clientSocket) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// upgradeWriter writes the answer to the upgrade, before the first frame.
type upgradeWriter struct{ *clientSocket }

func (u upgradeWriter) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n, err := u.Conn.Write(p)
	u.open = true
	if err == nil && u.restarting {
		err = u.closeRestarting()
	}
	return n, err
}

// closeRestarting writes the close frame once. The client answers it to the other node, which then
// closes the connection. The caller holds the lock.
func (c *clientSocket) closeRestarting() error {
	if c.restarted {
		return nil
	}
	c.restarted = true
	const reason = "service restart"
	frame := append([]byte{0x88, 2 + byte(len(reason))}, 0, 0)
	binary.BigEndian.PutUint16(frame[2:], uint16(websocket.StatusServiceRestart))
	_, err := c.Conn.Write(append(frame, reason...))
	return err
}

// stream is an answer without an end. It ends when the node that passes it on stops.
type stream struct {
	io.ReadCloser
	closing context.Context
	stop    func() bool
}

func newStream(closing context.Context, from io.ReadCloser) *stream {
	return &stream{from, closing, context.AfterFunc(closing, func() { _ = from.Close() })} // a read then ends
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && s.closing.Err() != nil {
		err = io.EOF
	}
	return n, err
}

func (s *stream) Close() error {
	s.stop()
	return s.ReadCloser.Close()
}
