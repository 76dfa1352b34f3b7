package s3store

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/minio/minio-go/v7"
)

// newTransport returns minio's transport, but with connections that fail if nothing moves
// on them. Otherwise a silent network loss would block forever.
func newTransport(secure bool, stall time.Duration, now func() time.Time) (*http.Transport, error) {
	t, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: min(10*time.Second, stall), KeepAlive: 30 * time.Second}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &stallConn{Conn: conn, stall: stall, now: now}, nil
	}
	t.ResponseHeaderTimeout = 0 // stallConn's limit is about the same, and counts from the last byte sent
	return t, nil
}

// stallConn is a connection that fails if it has no traffic for too long.
type stallConn struct {
	net.Conn
	stall time.Duration
	now   func() time.Time
}

// Read implements [net.Conn].
func (c *stallConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(c.now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

// Write implements [net.Conn]. Read waits for the response while a body is sent, so sent
// bytes extend Read's deadline too.
func (c *stallConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(c.now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
