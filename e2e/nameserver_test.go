package e2e

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer is a name server on loopback, over UDP and TCP. It records what it is asked.
type nameServer struct {
	at string

	mu    sync.Mutex
	names map[string][]string // the addresses of each name
	asked map[string]int      // by name
}

func newNameServer(t *testing.T, names map[string][]string) *nameServer {
	t.Helper()
	at := net.JoinHostPort("127.0.0.1", freePort(t))
	p, err := net.ListenPacket("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(); l.Close() })
	s := &nameServer{at: at, names: names, asked: map[string]int{}}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := p.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = p.WriteTo(s.answer(t, buffer[:n]), from)
		}
	}()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				var length [2]byte
				if _, err := io.ReadFull(conn, length[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(length[:]))
				if _, err := io.ReadFull(conn, query); err != nil {
					return
				}
				answer := s.answer(t, query)
				_, _ = conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
			}()
		}
	}()
	return s
}

func (s *nameServer) answer(t *testing.T, query []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		t.Errorf("a bad query: %v", err)
		return nil
	}
	q := m.Questions[0]
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[name]++
	m = dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
	addresses, ok := s.names[name]
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, text := range addresses {
		ip := netip.MustParseAddr(text)
		h := dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: 3600}
		switch {
		case ip.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: ip.As4()}})
		case ip.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		}
	}
	raw, err := m.Pack()
	if err != nil {
		t.Error(err)
	}
	return raw
}

// set replaces the addresses of a name.
func (s *nameServer) set(name string, addresses ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[name] = addresses
}

// below returns what was asked for below a name, and for the name itself.
func (s *nameServer) below(name string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for asked := range s.asked {
		if asked == name || strings.HasSuffix(asked, "."+name) {
			all = append(all, asked)
		}
	}
	return all
}
