package forward_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
)

// at is the clock of all nodes.
var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func clock(late time.Duration) func() time.Time {
	return func() time.Time { return at.Add(late) }
}

// signed returns a call that node a passes on to node b, as b receives it.
func signed(t *testing.T) *http.Request {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/sessions/s1/navigate?x=1", nil)
	r.RemoteAddr = "10.0.0.1:4711"
	r.Header.Set("Authorization", "Bearer secret")
	h := forward.Hop{To: "b", Purpose: forward.ToSession, Client: netip.MustParseAddr("192.0.2.7"), Base: "https://public.example/base"}
	if err := forward.NewSigner("a", []byte("shared"), clock(0)).Sign(r, h); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReceive(t *testing.T) {
	r := signed(t)
	r.Header.Set("X-Forwarded-For", "198.51.100.1")
	in, err := forward.NewSigner("b", []byte("shared"), clock(30*time.Second)).Receive(r)
	if err != nil {
		t.Fatal(err)
	}
	h, passed := forward.HopOf(in.Context())
	if !passed || h.From != "a" || h.Purpose != forward.ToSession {
		t.Errorf("the hop is %+v, %v", h, passed)
	}
	if in.RemoteAddr != "192.0.2.7:0" || in.Host != "public.example" {
		t.Errorf("the call comes from %s and names %s", in.RemoteAddr, in.Host)
	}
	if in.Header.Get("X-Forwarded-For") != "" || in.Header.Get(forward.Header) != "" || in.Header.Get("Authorization") != "Bearer secret" {
		t.Errorf("the headers are %v", in.Header)
	}
}

func TestReceiveFromClient(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	in, err := forward.NewSigner("b", []byte("shared"), clock(0)).Receive(r)
	if err != nil || in != r {
		t.Errorf("a call without the header is changed: %v", err)
	}
	if _, passed := forward.HopOf(in.Context()); passed {
		t.Error("it counts as passed on")
	}
}

// TestForged tries what a client that has seen a header, or makes one, could do with it.
func TestForged(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"another method": func(r *http.Request) { r.Method = http.MethodDelete },
		"another path":   func(r *http.Request) { r.RequestURI = "/v1/sessions/s2/navigate?x=1" },
		"another query":  func(r *http.Request) { r.RequestURI += "2" },
		"another key":    func(r *http.Request) { r.Header.Set("Authorization", "Bearer other") },
		"a further key":  func(r *http.Request) { r.Header.Set("X-Api-Key", "other") },
		"no mac": func(r *http.Request) {
			r.Header.Set(forward.Header, strings.Split(r.Header.Get(forward.Header), ".")[0])
		},
		"an empty mac": func(r *http.Request) {
			r.Header.Set(forward.Header, strings.Split(r.Header.Get(forward.Header), ".")[0]+".")
		},
		"a changed document": func(r *http.Request) { r.Header.Set(forward.Header, "A"+r.Header.Get(forward.Header)[1:]) },
		"two headers":        func(r *http.Request) { r.Header.Add(forward.Header, r.Header.Get(forward.Header)) },
		"empty":              func(r *http.Request) { r.Header.Set(forward.Header, "") },
	} {
		t.Run(name, func(t *testing.T) {
			r := signed(t)
			change(r)
			refuses(t, forward.NewSigner("b", []byte("shared"), clock(0)), r)
		})
	}
	t.Run("another node", func(t *testing.T) { refuses(t, forward.NewSigner("c", []byte("shared"), clock(0)), signed(t)) })
	t.Run("another secret", func(t *testing.T) { refuses(t, forward.NewSigner("b", []byte("other"), clock(0)), signed(t)) })
	t.Run("late", func(t *testing.T) {
		refuses(t, forward.NewSigner("b", []byte("shared"), clock(time.Minute)), signed(t))
	})
	t.Run("early", func(t *testing.T) {
		refuses(t, forward.NewSigner("b", []byte("shared"), clock(-time.Minute)), signed(t))
	})
}

// The URL of a node is signed together with its ID, and with the secret of all nodes.
func TestURLMAC(t *testing.T) {
	one := forward.NewSigner("a", []byte("shared"), clock(0))
	is := one.URLMAC("b", "http://b")
	if is != forward.NewSigner("b", []byte("shared"), clock(0)).URLMAC("b", "http://b") {
		t.Error("two nodes sign differently")
	}
	for _, other := range []string{one.URLMAC("c", "http://b"), one.URLMAC("b", "http://c"), one.URLMAC("bhttp:", "//b"), forward.NewSigner("a", []byte("other"), clock(0)).URLMAC("b", "http://b")} {
		if is == other {
			t.Error("another node, URL or secret has the same signature")
		}
	}
}

func refuses(t *testing.T, s *forward.Signer, r *http.Request) {
	t.Helper()
	in, err := s.Receive(r)
	if !fault.Is(err, fault.Forbidden) {
		t.Errorf("the error is %v", err)
	}
	if _, passed := forward.HopOf(in.Context()); passed || in.RemoteAddr != "10.0.0.1:4711" {
		t.Error("the header is believed")
	}
}
