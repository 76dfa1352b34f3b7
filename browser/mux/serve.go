package mux

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/budget"
)

// drainTimeout is how long a client may take to read its last answers after its own
// Browser.close.
const drainTimeout = 5 * time.Second

// Conn is a client's connection, such as a WebSocket with text messages. Read returns one
// message, in memory that the mux may keep. Write sends one. Both return when ctx ends.
// Close sends the code and the reason, closes the connection and makes a running Read or
// Write return. It bounds its own time and is called once.
type Conn interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, msg []byte) error
	Close(code int, reason string) error
}

// NonblockingConn is a Conn that can also send a message without waiting for the client.
// TryWrite sends msg or returns false; the mux then sends the message with Write.
// TryWrite must not wait: it runs on the reader of Chrome's pipe, which all peers depend
// on. It is not called during a Write.
type NonblockingConn interface {
	TryWrite(msg []byte) bool
}

// Metered is a Conn that assembles messages in memory. Meter is called before the first
// Read. Read calls take before it allocates n more bytes, and fails if take returns
// false. The mux returns the capacity of a message to the budget once it has forwarded
// the message.
type Metered interface {
	Meter(take func(n int) bool)
}

// ServeOptions says what a client is connected to.
type ServeOptions struct {
	// Target is the page that receives the client's messages without a sessionId, as on
	// /devtools/page/<id>. Empty means the browser.
	Target target.ID
	// Admission is the admission period in which the caller accepted the client; see
	// [Clients.Admission].
	Admission Admission
	// Shared, if set, makes the browser contexts that the client creates the session's own
	// profile. Without it they are empty.
	Shared *SharedContexts
	// Leaving, if set, is called when the client has disconnected and its sessions still
	// exist. It bounds its own time.
	Leaving func()
}

// Reasons of CloseTooSlow.
const (
	tooSlow     = "too slow: too many unread messages for this client"
	tooMuchHeld = "too slow: the daemon's memory for unread messages is full, and this client holds the most"
)

// client is a peer that is connected through a Conn.
type client struct {
	peer
	m       *Mux
	conn    Conn
	out     inbox
	held    *budget.Account
	metered bool
	tasks   sync.WaitGroup // answers that wait for Chrome

	once   sync.Once
	over   chan struct{} // closed by end
	exited chan struct{} // closed when Serve returns
	code   int
	reason string
	cause  error
	drain  bool
}

// Serve connects a client. It blocks until the client has disconnected, ctx has ended or
// Chrome has ended. Chrome then undoes everything that the client did through its
// sessions, and conn is closed. The error is nil if the client disconnected or was
// closed. It is browser_failed if Chrome has ended, and not_found if the target does not
// exist.
func (m *Mux) Serve(ctx context.Context, conn Conn, o ServeOptions) error {
	c := &client{m: m, conn: conn, over: make(chan struct{}), exited: make(chan struct{})}
	c.lane = m.out.lane(m.opts.UnsentBytes)
	c.held = m.opts.Budget.Open(m, func() { c.end(CloseTooSlow, tooMuchHeld, nil, false) })
	defer c.held.Close()
	c.lane.held = c.held
	if metered, ok := conn.(Metered); ok {
		c.metered = true
		metered.Meter(c.held.Take)
	}
	c.out.init(conn, m.opts.QueueBytes, c.held)
	c.event = c.deliver
	c.gone = func() { c.end(CloseNormal, "target closed", nil, true) }
	if !m.Clients.enter(c, o.Admission) {
		_ = conn.Close(c.code, c.reason) // the client may have disconnected already
		return c.cause
	}
	defer m.Clients.exit(c)
	if o.Shared != nil {
		m.shared.connect(c, *o.Shared)
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	attached, stop := c.attachment(ctx)
	err := m.attach(attached, &c.peer, string(o.Target))
	stop()
	if err != nil && ctx.Err() == nil {
		c.end(CloseBrowserGone, "not attached", err, false)
	}
	var loops sync.WaitGroup
	if err == nil {
		loops.Go(func() { c.read(ctx) })
		loops.Go(func() { c.write(ctx) })
	}
	select {
	case <-c.over:
	case <-ctx.Done():
		c.end(CloseGoingAway, "going away", nil, false)
	case <-m.done:
		c.end(CloseBrowserGone, "browser gone", m.Err(), false)
	}
	if o.Leaving != nil {
		o.Leaving()
	}
	m.leave(&c.peer)
	if c.contexts != nil {
		m.shared.end(ctx, c)
	}
	if c.out.finish(c.drain) {
		select {
		case <-c.out.empty:
		case <-time.After(drainTimeout):
		case <-ctx.Done():
		}
	}
	_ = conn.Close(c.code, c.reason) // the client may have disconnected already
	cancel()
	loops.Wait()
	c.tasks.Wait()
	return c.cause
}

// attachment returns a context that ends with ctx or with the client, so that
// [Clients.Close] does not wait for a Chrome that does not answer.
func (c *client) attachment(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-c.over:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(); <-done }
}

// end records how the connection ends. Only the first call has an effect.
func (c *client) end(code int, reason string, cause error, drain bool) {
	c.once.Do(func() {
		c.code, c.reason, c.cause, c.drain = code, reason, cause, drain
		close(c.over)
	})
}

func (c *client) write(ctx context.Context) {
	for {
		msg, ok := c.out.take(ctx)
		if !ok {
			return
		}
		if err := c.conn.Write(ctx, msg); err != nil {
			c.end(CloseNormal, "", nil, false)
			return
		}
		c.out.wrote(len(msg))
	}
}

func (c *client) read(ctx context.Context) {
	for {
		msg, err := c.conn.Read(ctx)
		if err != nil {
			c.end(CloseNormal, "", nil, false)
			return
		}
		err = c.handle(ctx, msg)
		if c.metered {
			c.held.Release(cap(msg))
		}
		if err != nil {
			if errors.Is(err, errClosed) {
				err = c.m.Err()
			}
			c.end(CloseBrowserGone, "browser gone", err, false)
			return
		}
	}
}

// push queues a message for the client; it never waits.
func (c *client) push(msg []byte) {
	if !c.out.push(msg) {
		c.end(CloseTooSlow, tooSlow, nil, false)
	}
}

// deliver sends an event of Chrome to the client. An event of the root session gets no
// sessionId. All others pass unchanged.
func (c *client) deliver(msg []byte, e envelope) {
	if string(e.session) == c.root {
		msg = event(e, "")
	}
	c.push(msg)
}
