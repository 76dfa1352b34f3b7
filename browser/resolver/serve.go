package resolver

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"strconv"
	"syscall"
	"time"
)

const (
	// streamTimeout bounds how long a stream may be idle, and a write may take.
	streamTimeout = 10 * time.Second
	// maxStreams is how many streams are open at once.
	maxStreams = 16
	// maxQuery is the most bytes of a query. A name has at most 255.
	maxQuery = 4096
	// maxPorts is how many ports are tried until one is free for all listeners.
	maxPorts = 20
)

// listen opens the listeners, all at the same port.
func (r *Resolver) listen() (err error) {
	for range maxPorts {
		if err = r.listenAt("127.0.0.1:0", "127.0.0.1"); err == nil {
			// Without IPv6 no query arrives over it.
			if err = r.listenAt(net.JoinHostPort("::1", strconv.Itoa(int(r.port))), "::1"); err == nil || noIPv6(err) {
				return nil
			}
		}
		r.unlisten()
	}
	return err
}

func noIPv6(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}

// listenAt opens the two listeners at an address of host.
func (r *Resolver) listenAt(address, host string) error {
	p, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	r.packets = append(r.packets, p)
	r.port = uint16(p.LocalAddr().(*net.UDPAddr).Port)
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(int(r.port))))
	if err != nil {
		return err
	}
	r.streams = append(r.streams, l)
	return nil
}

func (r *Resolver) unlisten() {
	for _, p := range r.packets {
		_ = p.Close() // nothing arrived
	}
	for _, l := range r.streams {
		_ = l.Close()
	}
	r.packets, r.streams = nil, nil
}

// servePackets answers datagrams until p is closed.
func (r *Resolver) servePackets(p net.PacketConn) {
	buffer := make([]byte, maxQuery)
	for {
		n, from, err := p.ReadFrom(buffer)
		if err != nil {
			if r.life.Err() != nil {
				return
			}
			continue // an earlier answer could not be delivered
		}
		select {
		case r.queries <- struct{}{}:
		default:
			continue
		}
		query := append([]byte(nil), buffer[:n]...)
		r.work.Go(func() {
			defer func() { <-r.queries }()
			if answer := r.answer(query, maxDatagram); answer != nil {
				_, _ = p.WriteTo(answer, from) // Chrome asks again
			}
		})
	}
}

// serveStreams answers connections until l is closed.
func (r *Resolver) serveStreams(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // it was reset
		}
		if !r.track(conn) {
			_ = conn.Close()
			continue
		}
		r.work.Go(func() {
			defer r.untrack(conn)
			r.serveStream(conn)
		})
	}
}

// serveStream answers the queries of a connection, in order (RFC 7766).
func (r *Resolver) serveStream(conn net.Conn) {
	for {
		var length [2]byte
		if err := conn.SetDeadline(r.c.Now().Add(streamTimeout)); err != nil {
			return
		}
		if _, err := io.ReadFull(conn, length[:]); err != nil {
			return
		}
		n := binary.BigEndian.Uint16(length[:])
		if n > maxQuery {
			return
		}
		query := make([]byte, n)
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		select {
		case r.queries <- struct{}{}:
		case <-r.life.Done():
			return
		}
		answer := r.answer(query, math.MaxUint16)
		<-r.queries
		if answer == nil {
			return
		}
		if err := conn.SetDeadline(r.c.Now().Add(streamTimeout)); err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

// track registers a connection, so that Close ends it; false if there are too many.
func (r *Resolver) track(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || len(r.conns) >= maxStreams {
		return false
	}
	r.conns[conn] = struct{}{}
	return true
}

func (r *Resolver) untrack(conn net.Conn) {
	_ = conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, conn)
}
