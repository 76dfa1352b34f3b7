package mux

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stasisd/stasis/fault"
)

// Two clients use the same IDs on separate sessions. Each gets its own answers, with its
// IDs and without its root session.
func TestAnswersReachTheirClient(t *testing.T) {
	m, _ := start(t, Options{}, func(f *fake, q message) []byte {
		if q.Method == "Browser.getVersion" {
			f.answer(q, fmt.Sprintf(`{"product":%q}`, q.Session))
			return []byte{}
		}
		return nil
	})
	a, b := connect(t, m, ServeOptions{}), connect(t, m, ServeOptions{})
	ra, rb := a.call(7, "", "Browser.getVersion", "{}"), b.call(7, "", "Browser.getVersion", "{}")
	if string(ra.Result) == string(rb.Result) {
		t.Errorf("both were answered on one session: %s", ra.Result)
	}
	big := a.call(9007199254740991, "", "Browser.getVersion", "{}")
	if string(big.Result) != string(ra.Result) {
		t.Errorf("a later call went to %s, want %s", big.Result, ra.Result)
	}
}

// An attached target belongs to the client that attached it. Only this client gets its
// events and can send to it.
func TestSessionsHaveOwners(t *testing.T) {
	m, f := start(t, Options{}, nil)
	a, b := connect(t, m, ServeOptions{}), connect(t, m, ServeOptions{})
	b.call(1, "", "Browser.getVersion", "{}")
	var r struct{ SessionID string }
	if err := json.Unmarshal(a.call(1, "", "Target.attachToTarget", `{"targetId":"T","flatten":true}`).Result, &r); err != nil {
		t.Fatal(err)
	}
	if got := a.call(2, r.SessionID, "Page.enable", "{}"); got.Error != nil {
		t.Errorf("the owner is refused: %+v", got.Error)
	}
	// A client can use neither a child nor a root session of another client.
	for _, id := range []string{r.SessionID, "S1", "S2", "nothing"} {
		if got := b.call(2, id, "Page.disable", "{}"); got.Error == nil || got.Error.Code != -32001 {
			t.Errorf("another client's session %s accepts commands: %+v", id, got)
		}
	}
	f.emit(r.SessionID, "Target.attachedToTarget", `{"sessionId":"iframe","targetInfo":{"targetId":"I","type":"iframe","url":"http://a/"}}`)
	if e := a.recv(); e.Session != r.SessionID || e.param("sessionId") != "iframe" {
		t.Errorf("the owner got %+v", e)
	}
	a.call(3, "iframe", "Page.enable", "{}")
	// The page closes, and the sessions below its session end too.
	f.emit(f.rootOf(r.SessionID), "Target.detachedFromTarget", fmt.Sprintf(`{"sessionId":%q}`, r.SessionID))
	if e := a.recv(); e.Method != "Target.detachedFromTarget" || e.Session != "" {
		t.Errorf("the owner got %+v", e)
	}
	if got := a.call(4, "iframe", "Page.enable", "{}"); got.Error == nil {
		t.Error("a session below a detached one still exists")
	}
	for _, q := range f.wait(0, method("Page.disable")) {
		t.Errorf("reached Chrome: %+v", q)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sessions.all) != 2 {
		t.Errorf("%d sessions remain, want the two roots", len(m.sessions.all))
	}
}

// rootOf returns the session on which another was attached.
func (f *fake) rootOf(string) string {
	return f.wait(1, func(m message) bool { return m.Method == "Target.attachToTarget" })[0].Session
}

func TestMalformedMessagesAreAnswered(t *testing.T) {
	m, f := start(t, Options{}, nil)
	c := connect(t, m, ServeOptions{})
	for text, code := range map[string]int{
		`{`: -32700, ``: -32700, `[]`: -32600, `{}`: -32600, `{"id":"a","method":"X.y"}`: -32600, `{"id":1}`: -32600,
		`{"id":1.5,"method":"X.y"}`: -32600, `{"id":1,"method":"X.y","params":[]}`: -32600,
		`{"id":1,"method":"A.b","method":"Page.navigate"}`:                                          -32600,
		`{"id":1,"meth\u006fd":"Page.enable"}`:                                                      -32600,
		`{"id":1,"method":"Page.n\u0061vigate"}`:                                                    -32600,
		"{\"id\":1,\"method\":\"A.b\"}\x00{\"id\":2,\"method\":\"Page.evil\"}":                      -32700,
		"{\"id\":1,\"method\":\"CSS.enable\",\"params\":{\"a\":\"\x00\"}}":                          -32700,
		`{"id":1,"method":"CSS.enable","params":{/*"*/},"method":"Page.evil","params":{}/*"*/}}`:    -32700,
		`{"id":1,"method":"Nothing.known"}`:                                                         -32601,
		`{"id":1,"method":"Page.navigate","params":{"url":"http://a/","url":"file:///etc/passwd"}}`: -32602,
	} {
		c.send(text)
		if got := c.recv(); got.Error == nil || got.Error.Code != code {
			t.Errorf("%q: %+v, want %d", text, got.Error, code)
		}
	}
	c.call(1, "", "Browser.getVersion", "{}")
	for _, q := range f.wait(0, func(q message) bool { return strings.HasPrefix(q.Method, "Page.") }) {
		t.Errorf("reached Chrome: %+v", q)
	}
}

// A client that does not read is closed when too much is queued for it. Another client's
// messages pass meanwhile.
func TestSlowClientIsClosed(t *testing.T) {
	m, f := start(t, Options{QueueBytes: 1 << 20}, nil)
	slow := newConn(t)
	slow.stuck = make(chan struct{})
	connectConn(t, m, ServeOptions{}, slow)
	other := connect(t, m, ServeOptions{})
	other.call(1, "", "Browser.getVersion", "{}")
	slow.send(`{"id":1,"method":"CSS.enable"}`)
	root := f.wait(1, method("CSS.enable"))[0].Session
	payload := fmt.Sprintf(`{"x":%q}`, strings.Repeat("x", 100<<10))
	for range 12 {
		f.emit(root, "CSS.fontsUpdated", payload)
		other.call(2, "", "Browser.getVersion", "{}")
	}
	if err := slow.gone(CloseTooSlow); err != nil {
		t.Errorf("Serve: %v", err)
	}
	other.call(3, "", "Browser.getVersion", "{}")
	f.wait(1, func(q message) bool { return q.Method == "Target.detachFromTarget" && q.param("sessionId") == root })
}

// A client may disconnect at any time, with requests pending. Nothing of it remains, and
// Chrome gets a command to drop its session.
func TestDisconnectedClientLeavesNothing(t *testing.T) {
	m, f := start(t, Options{}, func(_ *fake, q message) []byte {
		if q.Method == "Runtime.evaluate" {
			return []byte{} // not answered
		}
		return nil
	})
	for range 20 {
		c := connect(t, m, ServeOptions{})
		c.send(`{"id":1,"method":"Runtime.evaluate","params":{"expression":"1"}}`)
		c.call(2, "", "Target.attachToTarget", `{"targetId":"T","flatten":true}`)
		close(c.in)
		if err := c.gone(CloseNormal); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
	f.wait(20, method("Target.detachFromTarget"))
	d, err := m.Driver(t.Context()) // its answers come after those to the detach commands
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests.mu.Lock()
	defer m.requests.mu.Unlock()
	for _, p := range m.requests.pending {
		if p.method != "Target.detachFromTarget" {
			t.Errorf("pending: %+v", p)
		}
	}
	if len(m.sessions.all)+len(m.Clients.all)+len(m.users) != 0 {
		t.Errorf("remaining: %d sessions, %d clients, %d drivers", len(m.sessions.all), len(m.Clients.all), len(m.users))
	}
}

// A message of 100 MB reaches a client completely, and one of 10 MB reaches Chrome.
func TestHugeMessage(t *testing.T) {
	body := func(n int) []byte {
		return append(append([]byte(`{"html":"`), bytes.Repeat([]byte("0123456789"), n<<20/10)...), `"}`...)
	}
	up, down := body(10), body(100)
	m, _ := start(t, Options{UnsentBytes: 1 << 20, QueueBytes: 1 << 20}, func(f *fake, q message) []byte {
		if q.Method == "Page.setDocumentContent" {
			if !bytes.Equal(q.Params, up) {
				t.Errorf("Chrome got %d bytes", len(q.Params))
			}
			f.answer(q, string(down))
			return []byte{}
		}
		return nil
	})
	c := connect(t, m, ServeOptions{})
	if got := c.call(1, "", "Page.setDocumentContent", string(up)); !bytes.Equal(got.Result, down) {
		t.Errorf("client got %d bytes", len(got.Result))
	}
}

// Browser.close is answered and closes this connection, but never reaches Chrome.
func TestBrowserCloseEndsTheConnection(t *testing.T) {
	m, f := start(t, Options{}, nil)
	a, b := connect(t, m, ServeOptions{}), connect(t, m, ServeOptions{})
	b.call(1, "", "Browser.getVersion", "{}")
	if got := a.call(1, "", "Browser.close", "{}"); string(got.Result) != "{}" {
		t.Errorf("answered with %+v", got)
	}
	if err := a.gone(CloseNormal); err != nil {
		t.Errorf("Serve: %v", err)
	}
	b.call(2, "", "Browser.getVersion", "{}")
	for range f.wait(0, method("Browser.close")) {
		t.Error("Browser.close reached Chrome")
	}
}

func TestClientsAreCountedAndClosed(t *testing.T) {
	m, _ := start(t, Options{}, nil)
	a, b := connect(t, m, ServeOptions{}), connect(t, m, ServeOptions{})
	a.call(1, "", "Browser.getVersion", "{}")
	b.call(1, "", "Browser.getVersion", "{}")
	if n := m.Clients.Count(); n != 2 {
		t.Errorf("%d clients", n)
	}
	select {
	case <-m.Clients.Changed():
	default:
		t.Error("Changed sent no value")
	}
	if err := m.Clients.Close(t.Context(), CloseSessionEnded, "session_ended"); err != nil {
		t.Fatal(err)
	}
	if n := m.Clients.Count(); n != 0 {
		t.Errorf("%d clients after CloseClients", n)
	}
	for _, c := range []*testConn{a, b} {
		if err := c.gone(CloseSessionEnded); err != nil || c.reason != "session_ended" {
			t.Errorf("Serve: %v, reason %q", err, c.reason)
		}
	}
}

// A Chrome that reads nothing does not delay the end of a client, whether it is attaching
// or has messages queued.
func TestStuckChrome(t *testing.T) {
	stuck, hold := make(chan struct{}), make(chan struct{})
	m, _ := start(t, Options{UnsentBytes: 1 << 10}, func(_ *fake, q message) []byte {
		if q.Method == "CSS.enable" {
			select {
			case stuck <- struct{}{}:
			case <-hold:
			}
			<-hold
		}
		return nil
	})
	defer close(hold)
	a := connect(t, m, ServeOptions{})
	for range 3 { // one has reached Chrome, one is being written, one is queued
		a.send(fmt.Sprintf(`{"id":1,"method":"CSS.enable","params":{"x":%q}}`, strings.Repeat("x", 600)))
	}
	<-stuck
	b := connect(t, m, ServeOptions{})
	for m.Clients.Count() < 2 {
		<-m.Clients.Changed()
	}
	if err := m.Clients.Close(t.Context(), CloseSessionEnded, "session_ended"); err != nil {
		t.Fatal(err)
	}
	_, _ = a.gone(CloseSessionEnded), b.gone(CloseSessionEnded)
}

func TestDeadPipeEndsEveryone(t *testing.T) {
	m, f := start(t, Options{}, func(_ *fake, q message) []byte {
		if q.Method == "Runtime.evaluate" {
			return []byte{}
		}
		return nil
	})
	c := connect(t, m, ServeOptions{})
	c.call(1, "", "Browser.getVersion", "{}")
	d, err := m.Driver(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- d.Call(context.Background(), "Runtime.evaluate", nil, nil) }()
	f.wait(1, method("Runtime.evaluate"))
	events, cancel := d.Events("X.y")
	defer cancel()
	if err := f.conn.Close(); err != nil {
		t.Fatal(err)
	}
	<-m.Done()
	if err := <-failed; !fault.Is(err, fault.BrowserFailed) {
		t.Errorf("call: %v", err)
	}
	if err := c.gone(CloseBrowserGone); !fault.Is(err, fault.BrowserFailed) {
		t.Errorf("Serve: %v", err)
	}
	if _, ok := <-events; ok {
		t.Error("an event after the end of the pipe")
	}
	if err := m.Serve(t.Context(), newConn(t), ServeOptions{}); !fault.Is(err, fault.BrowserFailed) {
		t.Errorf("a later Serve: %v", err)
	}
	if _, err := m.Driver(t.Context()); !fault.Is(err, fault.BrowserFailed) {
		t.Errorf("a later Driver: %v", err)
	}
}

// A client of one page sends to it without a sessionId, and is closed when the page
// closes.
func TestPageClient(t *testing.T) {
	m, f := start(t, Options{}, nil)
	c := connect(t, m, ServeOptions{Target: "T"})
	c.call(1, "", "Page.enable", "{}")
	q := f.wait(1, method("Page.enable"))[0]
	if q.Session != "S1" {
		t.Errorf("sent on %q", q.Session)
	}
	f.emit("", "Target.detachedFromTarget", `{"sessionId":"S1","targetId":"T"}`)
	if err := c.gone(CloseNormal); err != nil {
		t.Errorf("Serve: %v", err)
	}
}
