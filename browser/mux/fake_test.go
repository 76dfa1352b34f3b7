package mux

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// message is a CDP message, parsed for a test.
type message struct {
	ID      *int64
	Session string
	Method  string
	Params  json.RawMessage
	Result  json.RawMessage
	Error   *struct {
		Code    int
		Message string
	}
}

// parse parses a message without decoding its large members.
func parse(b []byte) (message, error) {
	e, err := scan(b)
	m := message{Session: string(e.session), Method: string(e.method), Params: e.params, Result: e.result}
	if err == nil && e.id != nil {
		err = json.Unmarshal(e.id, &m.ID)
	}
	if err == nil && e.err != nil {
		err = json.Unmarshal(e.err, &m.Error)
	}
	return m, err
}

func (m message) param(name string) string {
	var p map[string]any
	_ = json.Unmarshal(m.Params, &p)
	return fmt.Sprint(p[name])
}

// fake is Chrome's end of a pipe. It creates sessions, and answers {} to every message
// for which handle returns nil.
type fake struct {
	t      *testing.T
	conn   net.Conn
	handle func(f *fake, m message) []byte // returns whole answers; nil for the default; "" for no answer

	mu        sync.Mutex
	cond      *sync.Cond
	got       []message
	processed int // the first ones of got
	sessions  int
	loop      sync.WaitGroup
	write     sync.Mutex
}

func start(t *testing.T, o Options, handle func(f *fake, m message) []byte) (*Mux, *fake) {
	t.Helper()
	ours, chrome := net.Pipe()
	f := &fake{t: t, conn: chrome, handle: handle}
	f.cond = sync.NewCond(&f.mu)
	f.loop.Go(f.run)
	m := New(ours, o)
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		_ = chrome.Close()
		f.loop.Wait()
	})
	return m, f
}

func (f *fake) run() {
	in := frames{r: f.conn}
	for {
		b, _, err := in.next()
		if err != nil {
			return
		}
		m, err := parse(b)
		if err != nil || m.ID == nil {
			f.t.Errorf("Chrome got %.200q: %v", b, err)
			continue
		}
		f.mu.Lock()
		f.got = append(f.got, m)
		f.mu.Unlock()
		f.process(m)
		f.mu.Lock()
		f.processed++
		f.mu.Unlock()
		f.cond.Broadcast()
	}
}

// process answers a message.
func (f *fake) process(m message) {
	if f.handle != nil {
		if answer := f.handle(f, m); answer != nil {
			f.send(answer)
			return
		}
	}
	switch m.Method {
	case "Target.attachToBrowserTarget", "Target.attachToTarget":
		f.mu.Lock()
		f.sessions++
		id := fmt.Sprintf("S%d", f.sessions)
		f.mu.Unlock()
		f.emit(m.Session, "Target.attachedToTarget", fmt.Sprintf(`{"sessionId":%q,"targetInfo":{"targetId":%q,"type":"page","url":""},"waitingForDebugger":false}`, id, m.param("targetId")))
		f.answer(m, fmt.Sprintf(`{"sessionId":%q}`, id))
	default:
		f.answer(m, `{}`)
	}
}

func (f *fake) answer(m message, result string) {
	f.send(fmt.Appendf(nil, `{"id":%d,"result":%s%s}`, *m.ID, result, sessionMember(m.Session)))
}

func (f *fake) emit(session, method, params string) {
	f.send(fmt.Appendf(nil, `{"method":%q,"params":%s%s}`, method, params, sessionMember(session)))
}

func sessionMember(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf(`,"sessionId":%q`, s)
}

func (f *fake) send(b []byte) {
	if len(b) == 0 {
		return
	}
	f.write.Lock()
	defer f.write.Unlock()
	_, _ = f.conn.Write(append(bytes.Clone(b), 0)) // a closed pipe ends run
}

// wait waits until n messages match and are processed, and returns the matching ones. What a test
// sends afterwards follows what the fake has sent for them.
func (f *fake) wait(n int, match func(message) bool) []message {
	f.t.Helper()
	deadline := time.AfterFunc(patience, f.cond.Broadcast)
	defer deadline.Stop()
	end := time.Now().Add(patience)
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		var found []message
		for _, m := range f.got[:f.processed] {
			if match(m) {
				found = append(found, m)
			}
		}
		if len(found) >= n {
			return found
		}
		if !time.Now().Before(end) {
			f.t.Fatalf("%d of %d expected messages reached Chrome, which got %d in total", len(found), n, len(f.got))
		}
		f.cond.Wait()
	}
}

func method(name string) func(message) bool {
	return func(m message) bool { return m.Method == name }
}

// testConn is a client's connection in memory.
type testConn struct {
	t      *testing.T
	in     chan []byte
	out    chan []byte
	closed chan struct{}
	once   sync.Once
	code   int
	reason string
	served chan error
	stuck  chan struct{} // if not nil, Write waits for it
}

func connect(t *testing.T, m *Mux, o ServeOptions) *testConn {
	t.Helper()
	return connectConn(t, m, o, newConn(t))
}

func newConn(t *testing.T) *testConn {
	return &testConn{t: t, in: make(chan []byte), out: make(chan []byte, 64), closed: make(chan struct{}), served: make(chan error, 1)}
}

func connectConn(t *testing.T, m *Mux, o ServeOptions, c *testConn) *testConn {
	t.Helper()
	serveConn(t, m, o, c, c)
	return c
}

// serveConn connects c; as is its type for the mux.
func serveConn(t *testing.T, m *Mux, o ServeOptions, c *testConn, as Conn) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { c.served <- m.Serve(ctx, as, o) })
	t.Cleanup(func() { cancel(); wg.Wait() })
}

func (c *testConn) Read(ctx context.Context) ([]byte, error) {
	select {
	case b, ok := <-c.in:
		if !ok {
			return nil, io.EOF
		}
		return b, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *testConn) Write(ctx context.Context, b []byte) error {
	if c.stuck != nil {
		select {
		case <-c.stuck:
		case <-c.closed:
			return io.EOF
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	select {
	case c.out <- b:
		return nil
	case <-c.closed:
		return io.EOF
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *testConn) Close(code int, reason string) error {
	c.once.Do(func() { c.code, c.reason = code, reason; close(c.closed) })
	return nil
}

func (c *testConn) send(s string) {
	c.t.Helper()
	select {
	case c.in <- []byte(s):
	case <-c.closed:
		c.t.Errorf("the connection was closed with %d %q before %.100q", c.code, c.reason, s)
	case <-time.After(patience):
		c.t.Fatalf("the mux did not read %.100q", s)
	}
}

func (c *testConn) recv() message {
	c.t.Helper()
	select {
	case b := <-c.out:
		m, err := parse(b)
		if err != nil {
			c.t.Fatalf("client got %.200q: %v", b, err)
		}
		return m
	case <-time.After(patience):
		c.t.Fatal("client got nothing")
	}
	return message{}
}

// call sends a command and returns its answer; events before it are dropped.
func (c *testConn) call(id int64, session, method, params string) message {
	c.t.Helper()
	c.send(fmt.Sprintf(`{"id":%d,"method":%q,"params":%s%s}`, id, method, params, sessionMember(session)))
	for {
		if m := c.recv(); m.ID != nil {
			if *m.ID != id || m.Session != session {
				c.t.Fatalf("answer to %d on %q came as %d on %q", id, session, *m.ID, m.Session)
			}
			return m
		}
	}
}

func (c *testConn) gone(code int) error {
	c.t.Helper()
	select {
	case err := <-c.served:
		if c.code != code {
			c.t.Errorf("closed with %d %q, want %d", c.code, c.reason, code)
		}
		return err
	case <-time.After(patience):
		c.t.Fatal("Serve has not returned")
		return nil
	}
}
