package mux

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/budget"
)

// drainTime is how long a client may take to read its last answers when its
// connection ends by its own Browser.close.
const drainTime = 5 * time.Second

// Conn is a client's connection, such as a WebSocket of text messages. Read
// returns one message, in memory that the mux may keep; Write sends one. Both
// return when ctx ends. Close sends the code and the reason, ends the
// connection and makes a Read and a Write under way return; it bounds its own
// time and is called once.
type Conn interface {
	Read(ctx context.Context) ([]byte, error)
	Write(ctx context.Context, msg []byte) error
	Close(code int, reason string) error
}

// Eager is a Conn that can also send a message without waiting for the client.
// Offer sends msg, or says false and the message goes by Write. It must not
// wait: it is called by who reads Chrome's pipe, whom all others wait for. It
// is not called while a Write is under way.
type Eager interface {
	Offer(msg []byte) bool
}

// Metered is a Conn that assembles messages in memory. Meter is called before
// the first Read: Read calls take before it has so many bytes more, and fails
// where that says false. The capacity of what Read returns is given back when
// the message has been passed on.
type Metered interface {
	Meter(take func(n int) bool)
}

// ServeOptions say what a client is connected to.
type ServeOptions struct {
	// Target is the page that the client's messages without a sessionId go to,
	// as on /devtools/page/<id>; empty means the browser.
	Target target.ID
	// Door is the one to come in by; see [Clients.Door].
	Door Door
	// Leaving is called, if set, when the client has gone and its sessions are
	// still there. It bounds its own time.
	Leaving func()
}

// Why a client is closed with CloseTooSlow.
const (
	tooSlow     = "too slow: too much waits for this client"
	tooMuchHeld = "too slow: the daemon has no room for what waits for its clients, and most waits here"
)

// client is a peer at the other end of a Conn.
type client struct {
	peer
	m       *Mux
	conn    Conn
	out     inbox
	held    *budget.Account
	metered bool

	once   sync.Once
	over   chan struct{} // closed by end
	exited chan struct{} // closed when Serve returns
	code   int
	reason string
	cause  error
	drain  bool
}

// Serve connects a client and blocks until it has gone, ctx has ended or
// Chrome has. Everything that the client did through its sessions is then
// undone by Chrome, and conn is closed. The error is nil when the client left
// or was sent away; it is browser_failed when Chrome is gone and not_found when
// there is no such target.
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
	if !m.Clients.enter(c, o.Door) {
		_ = conn.Close(c.code, c.reason) // whether it hears of it or has gone is one
		return c.cause
	}
	defer m.Clients.exit(c)

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
	if c.out.finish(c.drain) {
		select {
		case <-c.out.empty:
		case <-time.After(drainTime):
		case <-ctx.Done():
		}
	}
	_ = conn.Close(c.code, c.reason) // the client may have gone already; there is nobody to tell
	cancel()
	loops.Wait()
	return c.cause
}

// attachment is a context that ends with ctx or with the client: [Clients.Close]
// must not wait for a Chrome that does not answer.
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

// end says once how the connection ends.
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
			c.held.Give(cap(msg))
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

// deliver takes an event off Chrome; those on the root session carry no
// sessionId for the client, all others go as they are.
func (c *client) deliver(msg []byte, e envelope) {
	if string(e.session) == c.root {
		msg = event(e, "")
	}
	c.push(msg)
}
