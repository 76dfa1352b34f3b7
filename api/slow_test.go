package api

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/budget"
	"github.com/stasisd/stasis/session"
)

// A client that keeps up 64 KiB/s, with pauses, may send any amount. One that sends less
// than 16 KiB/s is cut off, whatever it sent before.
func TestPace(t *testing.T) {
	now := born
	// client sends n bytes after each wait, until it has sent all or is cut off.
	client := func(p *pace, n int, wait time.Duration, all int) (sent int) {
		for sent < all {
			since := now
			now = now.Add(wait)
			if now.After(since.Add(p.most - p.spent)) {
				break
			}
			p.moved(since, n)
			sent += n
		}
		return sent
	}
	fresh := func() *pace { return &pace{now: func() time.Time { return now }, most: time.Minute} }
	const large = 2 << 30
	for name, test := range map[string]struct {
		n    int
		wait time.Duration
	}{"steady": {64 << 10, time.Second}, "with pauses": {50 * 64 << 10, 50 * time.Second}} {
		if sent := client(fresh(), test.n, test.wait, large); sent < large {
			t.Errorf("%s: cut off after %d bytes", name, sent)
		}
	}
	p := fresh()
	if client(p, 1<<20, time.Second, large); p.spent != 0 {
		t.Errorf("quick: %s are spent", p.spent)
	}
	if sent := client(p, 1, 50*time.Second, large); sent > 1 {
		t.Errorf("a byte each 50 s: %d bytes passed", sent)
	}
	if sent := client(fresh(), 8<<10, time.Second, large); sent > 2<<20 {
		t.Errorf("8 KiB/s: %d bytes passed", sent)
	}
}

// raw sends bytes on its own connection, and nothing more.
func (r *rig) raw(t *testing.T, request string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the test may have closed it already
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	return c
}

// A body that stalls ends its request, on every route that reads a body, and also on a
// route or without a key, where no handler reads it.
func TestStalledBodies(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Patience = 300 * time.Millisecond })
	for route, want := range map[string]int{
		"POST /v1/sessions":                                      http.StatusBadRequest,
		"POST /v1/snapshots?format=datadir":                      http.StatusBadRequest,
		"POST /v1/extensions":                                    http.StatusBadRequest,
		"POST /v1/sessions/live-1/files?name=x":                  http.StatusBadRequest,
		"PUT /v1/sessions/s/scopes/agent/a/snapshots/latest":     http.StatusBadRequest,
		"DELETE /v1/extensions/abcdefghijklmnopabcdefghijklmnop": http.StatusNoContent,
		"POST /v1/sessions without a key":                        http.StatusUnauthorized,
	} {
		route, bare := strings.CutSuffix(route, " without a key")
		key := "X-Api-Key: " + goodKey + "\r\n"
		if bare {
			key = ""
		}
		c := r.raw(t, route+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"+key+"\r\n{")
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%s: %v", route, err)
			continue
		}
		if answer.StatusCode != want {
			t.Errorf("%s: %d", route, answer.StatusCode)
		}
		_ = answer.Body.Close() // the connection is closed below
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("%s: the connection is not closed cleanly: %v", route, err)
		}
	}
}

// A client that reads nothing is cut off, and the memory of its answer is freed.
func TestUnreadAnswersAreCutOff(t *testing.T) {
	held := budget.New(0)
	r := newRig(t, func(o *Options) { o.Patience, o.Budget = 300*time.Millisecond, held })
	r.large = bytes.Repeat([]byte("x"), 32<<20)
	if err := os.WriteFile(filepath.Join(r.dir, "large"), r.large, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/v1/snapshots/snap-1/state?format=netscape", "/v1/snapshots/snap-1/state?format=netscape&envelope=true", "/v1/snapshots/snap-1/state?envelope=true", "/v1/snapshots/snap-1/archive", "/v1/sessions/live-1/files/large"} {
		c := r.raw(t, "GET "+path+" HTTP/1.1\r\nHost: x\r\nX-Api-Key: "+goodKey+"\r\n\r\n")
		// When the lock is free, all handlers have returned.
		if _, err := io.ReadFull(c, make([]byte, 20)); err != nil { // the answer has begun
			t.Fatal(err)
		}
		r.server.running.Lock()
		r.server.running.Unlock() //nolint:staticcheck // taking the lock is the wait
		if n, err := io.Copy(io.Discard, c); n >= int64(len(r.large)) {
			t.Errorf("%s: all %d bytes arrived, %v", path, n, err)
		}
		if used, _ := held.Use(); used != 0 {
			t.Errorf("%s: %d bytes are held", path, used)
		}
	}
}

// A client that reads slowly but keeps up gets all of a large answer.
func TestSlowReadersGetTheirAnswer(t *testing.T) {
	r := newRig(t, nil)
	r.large = bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	c := r.raw(t, "GET /v1/snapshots/snap-1/state?format=netscape HTTP/1.1\r\nHost: x\r\nX-Api-Key: "+goodKey+"\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(answer.Body)
	if err != nil || !bytes.Equal(got, r.large) {
		t.Errorf("%d bytes arrived, %v", len(got), err)
	}
	_ = answer.Body.Close() // it was read to its end
}

// When the memory for waiting answers is used up, the key with the most waiting bytes loses
// its largest answer. A small answer of another key is served.
func TestAnswersShareTheBudget(t *testing.T) {
	held := budget.New(100 << 20)
	r := newRig(t, func(o *Options) { o.Budget = held })
	r.large = bytes.Repeat([]byte("x"), 32<<20)
	for range 6 {
		r.raw(t, "GET /v1/snapshots/snap-1/state?format=netscape HTTP/1.1\r\nHost: x\r\nX-Api-Key: "+goodKey+"\r\n\r\n")
	}
	waitFor(t, func() bool { _, evicted := held.Use(); return evicted == 3 })
	if used, _ := held.Use(); used > 100<<20 {
		t.Errorf("%d bytes are held", used)
	}
	r.large = nil
	if answer, _ := r.do(t, "GET", "/v1/snapshots/snap-1/state?format=netscape", ""); answer.StatusCode != http.StatusOK {
		t.Errorf("a small answer: %d", answer.StatusCode)
	}
}

// Large bodies that arrive slowly count in the budget too.
func TestBodiesShareTheBudget(t *testing.T) {
	held := budget.New(20 << 20)
	r := newRig(t, func(o *Options) { o.Budget = held })
	begun := "PUT /v1/sessions/s/scopes/agent/a/snapshots/latest HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 16000000\r\nX-Api-Key: " + goodKey + "\r\n\r\n"
	var all []net.Conn
	for range 3 {
		c := r.raw(t, begun)
		if _, err := c.Write(bytes.Repeat([]byte("1"), 9<<20)); err != nil {
			t.Logf("cut off while sending: %v", err)
		}
		all = append(all, c)
	}
	waitFor(t, func() bool { _, evicted := held.Use(); return evicted > 0 })
	if used, _ := held.Use(); used > 20<<20 {
		t.Errorf("%d bytes are held", used)
	}
	for _, c := range all {
		_ = c.Close()
	}
	waitFor(t, func() bool { used, _ := held.Use(); return used == 0 })
}

// serving runs the server as the daemon does.
func (r *rig) serving(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	r.url = "http://" + l.Addr().String()
}

// Clients that send nothing, send headers slowly, or keep connections idle do not lock
// others out. No more connections than the limit are open. Connections whose requests are
// being served are not closed.
func TestConnectionsAreBounded(t *testing.T) {
	const most = 8
	r := newRig(t, func(o *Options) { o.MaxConnections, o.Grace = most, time.Millisecond })
	r.serve = func(ctx context.Context, conn session.Conn) error {
		_, err := conn.Read(ctx) // answers pings
		return err
	}
	r.serving(t)
	ws, _, _, err := dial(t, r.url+"/v1/sessions/live-1/cdp", http.Header{"X-Api-Key": {goodKey}})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow() //nolint:errcheck // the server closes it
	for n := range 5 * most {
		r.raw(t, []string{"", "GET /he", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"}[n%3])
		if answer, _ := r.do(t, "GET", "/v1/me", ""); answer.StatusCode != http.StatusOK {
			t.Fatalf("%d", answer.StatusCode)
		}
		r.client.CloseIdleConnections()
	}
	r.server.connections.mu.Lock()
	open := len(r.server.connections.open)
	r.server.connections.mu.Unlock()
	if open > most {
		t.Errorf("%d connections are open", open)
	}
	gone := ws.CloseRead(t.Context()) // reads the answer to the ping
	if err := ws.Ping(t.Context()); err != nil {
		t.Errorf("a client whose request is served was cut off: %v, %v", err, context.Cause(gone))
	}
}

// If all connections serve requests, a new one is closed. When one of them has ended, a new
// one is accepted.
func TestServedConnectionsAreKept(t *testing.T) {
	const most = 4
	r := newRig(t, func(o *Options) { o.MaxConnections = most })
	r.entries, r.feedWaits = nil, true
	r.serving(t)
	var all []net.Conn
	for range most {
		c := r.raw(t, "GET /v1/sessions/live-1/events HTTP/1.1\r\nHost: x\r\nX-Api-Key: "+goodKey+"\r\n\r\n")
		if _, err := io.ReadFull(c, make([]byte, 20)); err != nil { // the answer has begun
			t.Fatal(err)
		}
		all = append(all, c)
	}
	one := r.raw(t, "")
	if _, err := one.Read(make([]byte, 1)); err == nil {
		t.Error("a connection beyond the limit was served")
	}
	_ = all[0].Close()
	waitFor(t, func() bool {
		c := r.raw(t, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		_, err := io.ReadFull(c, make([]byte, 20))
		return err == nil
	})
	for _, c := range all[1:] {
		_ = c.Close() // open streams would use up the grace period
	}
}

// A WebSocket message that has begun must arrive within the patience, or at the least rate.
// Between messages a client may wait as long as it likes.
func TestStalledMessages(t *testing.T) {
	open := func(patience time.Duration) (net.Conn, *bufio.Reader) {
		r := newRig(t, func(o *Options) { o.Patience = patience })
		c := r.raw(t, "GET /v1/sessions/live-1/cdp?ticket="+goodTicket+" HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"+
			"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n")
		from := bufio.NewReader(c)
		answer, err := http.ReadResponse(from, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(answer.Status, err)
		}
		return c, from
	}
	send := func(c net.Conn, b ...byte) {
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	begun := []byte{0x81, 0x80 | 5, 0, 0, 0, 0} // a text message of 5 bytes, masked with zeros

	t.Run("stalled", func(t *testing.T) {
		c, from := open(300 * time.Millisecond)
		send(c, append(bytes.Clone(begun), "ab"...)...)
		frame := make([]byte, 4)
		if _, err := io.ReadFull(from, frame); err != nil {
			t.Fatal(err)
		}
		if code := int(frame[2])<<8 | int(frame[3]); frame[0] != 0x88 || code != 1008 {
			t.Errorf("the frame is % x, not a close frame with 1008", frame)
		}
	})
	t.Run("waits between messages", func(t *testing.T) {
		const patience = 2 * time.Second // for each message on a busy machine
		c, from := open(patience)
		for n := range 2 {
			if n > 0 {
				<-time.After(patience + patience/2) // the time is what is tested
			}
			send(c, append(bytes.Clone(begun), "abcde"...)...)
			answer := make([]byte, 2+len(":abcde"))
			if _, err := io.ReadFull(from, answer); err != nil || string(answer[2:]) != ":abcde" {
				t.Fatalf("got %q, %v", answer, err)
			}
		}
	})
}
