//go:build linux

package netns

import (
	"context"
	"net"
	"net/netip"
	"time"
)

const (
	// maxQueries bounds the queries of one Chrome that wait for an answer.
	maxQueries = 256
	// queryTimeout is how long an answer is awaited. Chrome asks again after a second.
	queryTimeout = 10 * time.Second
	maxDatagram  = 64 << 10
)

// resolve passes the queries that come to conn on to a name server of the machine, and its
// answers back.
func (l *Link) resolve(conn net.PacketConn, server netip.AddrPort) {
	places := make(chan struct{}, maxQueries)
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			if l.ctx.Err() != nil {
				return
			}
			continue // such as for an earlier answer that could not be delivered
		}
		query := append([]byte(nil), buf[:n]...)
		select {
		case places <- struct{}{}:
			l.served.Go(func() {
				defer func() { <-places }()
				if answer, err := l.ask(server, query); err == nil {
					_, _ = conn.WriteTo(answer, from) // Chrome may have ended
				}
			})
		default: // Chrome asks again
		}
	}
}

func (l *Link) ask(server netip.AddrPort, query []byte) ([]byte, error) {
	var d net.Dialer
	conn, err := d.DialContext(l.ctx, "udp", server.String())
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if !l.track(conn) {
		return nil, net.ErrClosed
	}
	defer l.untrack(conn)
	deadline, cancel := context.WithTimeout(l.ctx, queryTimeout)
	defer cancel()
	if at, ok := deadline.Deadline(); ok {
		if err := conn.SetDeadline(at); err != nil {
			return nil, err
		}
	}
	if _, err := conn.Write(query); err != nil {
		return nil, err
	}
	answer := make([]byte, maxDatagram)
	n, err := conn.Read(answer)
	return answer[:n], err
}
