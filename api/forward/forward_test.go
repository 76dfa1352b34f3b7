package forward_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/placement"
)

// nodes is a forward.Nodes of one node.
type nodes struct {
	url  string
	lost atomic.Bool
}

func (n *nodes) Node(context.Context, string) (placement.Node, error) {
	left := time.Minute
	if n.lost.Load() {
		left = 0
	}
	mac := forward.NewSigner("a", []byte("shared"), time.Now).URLMAC("b", n.url)
	return placement.Node{ID: "b", URL: n.url, Number: 1, Left: left, Facts: placement.Facts{URLMAC: mac}}, nil
}

// rig is node a, which passes each call on to node b.
type rig struct {
	forwarder *forward.Forwarder
	nodes     nodes
	a         *httptest.Server
	errs      chan error // of each call that was passed on
}

func newRig(t *testing.T, b http.HandlerFunc) *rig {
	t.Helper()
	signer := forward.NewSigner("b", []byte("shared"), time.Now)
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, err := signer.Receive(r)
		if err != nil {
			t.Error(err)
		}
		b(w, in)
	}))
	t.Cleanup(there.Close)
	g := &rig{errs: make(chan error, 8)}
	g.nodes.url = there.URL
	g.forwarder = forward.New(forward.Config{Signer: forward.NewSigner("a", []byte("shared"), time.Now), Nodes: &g.nodes, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(g.forwarder.Close)
	g.a = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Set", "by a")
		to, _ := g.nodes.Node(r.Context(), "b")
		g.errs <- g.forwarder.Pass(w, r, to, forward.Hop{Purpose: forward.ToSession, Base: "http://public"}, nil)
	}))
	t.Cleanup(g.a.Close)
	return g
}

func TestPass(t *testing.T) {
	g := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Set", "by b")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, r.Method+" "+r.RequestURI+" "+r.Host+" "+string(body)+" "+r.Header.Get("X-Forwarded-For"))
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, g.a.URL+"/v1/a%2Fb?x=%zz&y=1;2", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if want := "PUT /v1/a%2Fb?x=%zz&y=1;2 public body "; err != nil || string(text) != want || answer.StatusCode != http.StatusTeapot {
		t.Errorf("%d %q, %v; want %q", answer.StatusCode, text, err, want)
	}
	if got := answer.Header.Values("X-Set"); len(got) != 1 || got[0] != "by b" {
		t.Errorf("X-Set is %q", got)
	}
	if err := <-g.errs; err != nil {
		t.Error(err)
	}
}

// TestElsewhere checks that an answer of a node that does not have the session is not passed on.
func TestElsewhere(t *testing.T) {
	g := newRig(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMisdirectedRequest) })
	answer, err := http.Get(g.a.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if err := <-g.errs; !errors.Is(err, forward.ErrElsewhere) {
		t.Error(err)
	}
	if got := answer.Header.Get("X-Set"); got != "by a" {
		t.Errorf("the answer has headers of the other node: %q", got)
	}
}

// TestNodeStopped checks that a call ends when the node that does not answer loses its lease.
func TestNodeStopped(t *testing.T) {
	g := newRig(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	g.nodes.lost.Store(false)
	done := make(chan error, 1)
	go func() {
		answer, err := http.Get(g.a.URL)
		if err == nil {
			err = answer.Body.Close()
		}
		done <- err
	}()
	g.nodes.lost.Store(true)
	if err := <-g.errs; !fault.Is(err, fault.NodeUnavailable) || forward.NotSent(err) {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSentOnce checks that a call whose connection ends without an answer is not sent again: the
// node may have carried it out.
func TestSentOnce(t *testing.T) {
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "X-Other"} {
		var calls atomic.Int32
		var sent atomic.Value
		g := newRig(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				return
			}
			calls.Add(1)
			sent.Store(r.Header.Get(name))
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				err = conn.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
		call := func(method string) error {
			r, err := http.NewRequestWithContext(t.Context(), method, g.a.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set(name, "k")
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			return <-g.errs
		}
		if err := call(http.MethodGet); err != nil { // its connection is used again
			t.Fatal(err)
		}
		if err := call(http.MethodPost); !forward.Unanswered(err) || calls.Load() != 1 || sent.Load() != "k" {
			t.Errorf("%s: %v was sent %d times, %v", name, sent.Load(), calls.Load(), err)
		}
	}
}

// TestNodeGone checks that a call which has not reached its node says so.
func TestNodeGone(t *testing.T) {
	g := newRig(t, func(http.ResponseWriter, *http.Request) {})
	g.nodes.url = "http://127.0.0.1:1"
	answer, err := http.Get(g.a.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if err := <-g.errs; !fault.Is(err, fault.NodeUnavailable) || !forward.NotSent(err) {
		t.Error(err)
	}
}

// echo answers each message with the message.
func echo(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow() //nolint:errcheck // the test is over
	for {
		kind, msg, err := ws.Read(r.Context())
		if err != nil || ws.Write(r.Context(), kind, msg) != nil {
			return
		}
	}
}

// TestSocket checks a WebSocket, and that it ends when its node loses the lease.
func TestSocket(t *testing.T) {
	g := newRig(t, echo)
	ws, _, err := websocket.Dial(t.Context(), g.a.URL, nil) //nolint:bodyclose // the library closes it
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow() //nolint:errcheck // it is closed below
	exchange(t, ws)
	g.nodes.lost.Store(true)
	if _, _, err := ws.Read(t.Context()); err == nil {
		t.Error("the socket stays open")
	}
	if err := <-g.errs; err != nil {
		t.Error(err)
	}
}

func exchange(t testing.TB, ws *websocket.Conn) {
	if err := ws.Write(t.Context(), websocket.MessageText, []byte(`{"id":1}`)); err != nil {
		t.Fatal(err)
	}
	if _, msg, err := ws.Read(t.Context()); err != nil || string(msg) != `{"id":1}` {
		t.Fatal(string(msg), err)
	}
}

// BenchmarkHop measures an exchange of a small message with and without a hop.
func BenchmarkHop(b *testing.B) {
	there := httptest.NewServer(http.HandlerFunc(echo))
	b.Cleanup(there.Close)
	n := &nodes{url: there.URL}
	f := forward.New(forward.Config{Signer: forward.NewSigner("a", []byte("shared"), time.Now), Nodes: n, Log: slog.New(slog.DiscardHandler)})
	b.Cleanup(f.Close)
	here := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, _ := n.Node(r.Context(), "b")
		_ = f.Pass(w, r, to, forward.Hop{Purpose: forward.ToSession}, nil) // it ends with the benchmark
	}))
	b.Cleanup(here.Close)
	for name, url := range map[string]string{"direct": there.URL, "hop": here.URL} {
		b.Run(name, func(b *testing.B) {
			ws, _, err := websocket.Dial(b.Context(), url, nil) //nolint:bodyclose // the library closes it
			if err != nil {
				b.Fatal(err)
			}
			defer ws.CloseNow() //nolint:errcheck // the benchmark is over
			for b.Loop() {
				exchange(b, ws)
			}
		})
	}
}

// A node that stops closes the WebSockets that it passes on with 1012, after the frame that has
// begun.
func TestCloseRestarts(t *testing.T) {
	large := strings.Repeat("x", 100_000)
	g := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow() //nolint:errcheck // the test is over
		if ws.Write(r.Context(), websocket.MessageText, []byte(large)) == nil {
			_, _, _ = ws.Read(r.Context()) // answers the close frame
		}
	})
	ws, _, err := websocket.Dial(t.Context(), g.a.URL, nil) //nolint:bodyclose // the library closes it
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow() //nolint:errcheck // the test is over
	ws.SetReadLimit(1 << 20)
	g.forwarder.Close()
	_, got, err := ws.Read(t.Context())
	if websocket.CloseStatus(err) != websocket.StatusServiceRestart && (err != nil || string(got) != large) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	if err == nil {
		_, _, err = ws.Read(t.Context())
	}
	if websocket.CloseStatus(err) != websocket.StatusServiceRestart {
		t.Errorf("closed with %v", err)
	}
	if err := <-g.errs; err != nil {
		t.Error(err)
	}
}

// A node that stops ends streams, and gives other calls the time to end.
func TestCloseEndsStreams(t *testing.T) {
	begun, end := make(chan bool, 1), make(chan bool)
	g := newRig(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		begun <- true
		<-end
		_, _ = io.WriteString(w, "done")
	})
	stream, err := http.Get(g.a.URL + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	// What has not arrived when the stream ends is lost.
	if _, err := io.ReadFull(stream.Body, make([]byte, len("data: 1\n\n"))); err != nil {
		t.Fatal(err)
	}
	call := make(chan string, 1)
	go func() {
		answer, err := http.Get(g.a.URL + "/call")
		if err != nil {
			call <- err.Error()
			return
		}
		defer answer.Body.Close()
		got, err := io.ReadAll(answer.Body)
		if err != nil {
			got = []byte(err.Error())
		}
		call <- string(got)
	}()
	<-begun
	g.forwarder.Close()
	if rest, err := io.ReadAll(stream.Body); len(rest) > 0 || err != nil {
		t.Errorf("after its first line the stream has %q, %v", rest, err)
	}
	close(end)
	if got := <-call; got != "done" {
		t.Errorf("the call is answered %q", got)
	}
}
