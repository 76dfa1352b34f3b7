package resolver

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// upstream is a name server over UDP. a.example is an alias of b.example, whose address is
// 8.8.8.8. Any other name does not exist. A broken one answers nothing but failures.
func upstream(t *testing.T, broken bool) (at string, asked *atomic.Int64) {
	t.Helper()
	p, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked = new(atomic.Int64)
	done := make(chan struct{})
	t.Cleanup(func() { p.Close(); <-done })
	go func() {
		defer close(done)
		buffer := make([]byte, 4096)
		for {
			n, from, err := p.ReadFrom(buffer)
			if err != nil {
				return
			}
			asked.Add(1)
			var m dnsmessage.Message
			if err := m.Unpack(buffer[:n]); err != nil {
				t.Error(err)
				return
			}
			m = dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
			switch name := m.Questions[0].Name; {
			case broken:
				m.RCode = dnsmessage.RCodeServerFailure
			case name.String() != "a.example.":
				m.RCode = dnsmessage.RCodeNameError
			case m.Questions[0].Type == dnsmessage.TypeA:
				alias := dnsmessage.MustNewName("b.example.")
				m.Answers = []dnsmessage.Resource{
					{Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET}, Body: &dnsmessage.CNAMEResource{CNAME: alias}},
					{Header: dnsmessage.ResourceHeader{Name: alias, Class: dnsmessage.ClassINET}, Body: &dnsmessage.AResource{A: [4]byte{8, 8, 8, 8}}},
				}
			}
			raw, err := m.Pack()
			if err != nil {
				t.Error(err)
			}
			_, _ = p.WriteTo(raw, from)
		}
	}()
	return p.LocalAddr().String(), asked
}

// The next server is asked if one fails, and not if a name does not exist. The answer
// for an alias counts for the name that was asked for.
func TestUpstream(t *testing.T) {
	bad, badAsked := upstream(t, true)
	good, goodAsked := upstream(t, false)
	lookup := Upstream([]string{bad, good})
	for _, c := range []struct{ network, name, want string }{{"ip4", "a.example", "[8.8.8.8]"}, {"ip6", "a.example", "[]"}, {"ip4", "c.example", "[]"}} {
		found, err := lookup(t.Context(), c.network, c.name)
		if err != nil || fmt.Sprint(found) != c.want {
			t.Errorf("%s %s: got %s, %v, want %s", c.network, c.name, found, err, c.want)
		}
	}
	if badAsked.Load() == 0 || goodAsked.Load() == 0 {
		t.Errorf("asked %d and %d times", badAsked.Load(), goodAsked.Load())
	}
	before := badAsked.Load()
	if _, err := Upstream([]string{good, bad})(t.Context(), "ip4", "c.example"); err != nil || badAsked.Load() != before {
		t.Errorf("a name that does not exist was asked for at the next server, %v", err)
	}
	if _, err := Upstream([]string{bad})(t.Context(), "ip4", "a.example"); err == nil {
		t.Error("no error without a server that answers")
	}
}
