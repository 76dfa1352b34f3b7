package resolver

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"sync"
	"time"
)

const (
	// maxQueries is how many queries are answered at once. More datagrams are dropped, and
	// Chrome asks again.
	maxQueries = 64
	// streamTimeout bounds how long a stream may be idle, and a write may take.
	streamTimeout = 10 * time.Second
	// maxStreams is how many streams are open at once.
	maxStreams = 16
	// acceptPause is the time after a stream that could not be accepted.
	acceptPause = 100 * time.Millisecond
	// maxQuery is the most bytes of a query. A name has at most 255.
	maxQuery = 4096
)

// Answer returns the answer to a query, at most limit bytes long; nil if there is none. ctx
// bounds how long it takes. See [Resolver.Answer].
type Answer func(ctx context.Context, query []byte, limit int) []byte

// Server is a server of the DNS, over UDP and TCP. Close ends it.
type Server struct {
	answer  Answer
	packets []net.PacketConn
	streams []net.Listener
	queries chan struct{} // a value for each query that is being answered
	life    context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// Serve starts a Server at sockets, which it takes over.
func Serve(answer Answer, packets []net.PacketConn, streams []net.Listener) *Server {
	s := &Server{answer: answer, packets: packets, streams: streams, queries: make(chan struct{}, maxQueries), conns: map[net.Conn]struct{}{}}
	s.life, s.cancel = context.WithCancel(context.Background())
	for _, p := range packets {
		s.work.Go(func() { s.servePackets(p) })
	}
	for _, l := range streams {
		s.work.Go(func() { s.serveStreams(l) })
	}
	return s
}

// Close ends it and waits for its work. It is idempotent.
func (s *Server) Close() {
	s.cancel()
	closeAll(s.packets, s.streams)
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

func closeAll(packets []net.PacketConn, streams []net.Listener) {
	for _, p := range packets {
		_ = p.Close() // nothing is lost
	}
	for _, l := range streams {
		_ = l.Close()
	}
}

// servePackets answers datagrams until p is closed.
func (s *Server) servePackets(p net.PacketConn) {
	buffer := make([]byte, maxQuery)
	for {
		n, from, err := p.ReadFrom(buffer)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // an earlier answer could not be delivered
		}
		select {
		case s.queries <- struct{}{}:
		default:
			continue
		}
		query := append([]byte(nil), buffer[:n]...)
		s.work.Go(func() {
			defer func() { <-s.queries }()
			if answer := s.answer(s.life, query, maxDatagram); answer != nil {
				_, _ = p.WriteTo(answer, from) // Chrome asks again
			}
		})
	}
}

// serveStreams answers connections until l is closed.
func (s *Server) serveStreams(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// Too many open files, for instance.
			select {
			case <-s.life.Done():
				return
			case <-time.After(acceptPause):
			}
			continue
		}
		if !s.track(conn) {
			_ = conn.Close()
			continue
		}
		s.work.Go(func() {
			defer s.untrack(conn)
			s.serveStream(conn)
		})
	}
}

// serveStream answers the queries of a connection, in order (RFC 7766).
func (s *Server) serveStream(conn net.Conn) {
	idle := time.AfterFunc(streamTimeout, func() { _ = conn.Close() })
	defer idle.Stop()
	for {
		var length [2]byte
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
		if !idle.Stop() {
			return
		}
		select {
		case s.queries <- struct{}{}:
		case <-s.life.Done():
			return
		}
		answer := s.answer(s.life, query, math.MaxUint16)
		<-s.queries
		if answer == nil {
			return
		}
		idle.Reset(streamTimeout)
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
		idle.Reset(streamTimeout)
	}
}

// track registers a connection, so that Close ends it; false if there are too many.
func (s *Server) track(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil || len(s.conns) >= maxStreams {
		return false
	}
	s.conns[conn] = struct{}{}
	return true
}

func (s *Server) untrack(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}
