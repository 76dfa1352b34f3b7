package mux

import (
	"context"
	"errors"
	"sync"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/budget"
	"github.com/stasisd/stasis/fault"
)

// Driver is the daemon's own client: a browser-level [cdp.Session] to which the policy
// table does not apply. Its methods are safe for concurrent use. It replaces invalid
// UTF-8 when it decodes, because pages can put any bytes into a string.
type Driver struct {
	peer
	m *Mux

	mu    sync.Mutex
	subs  map[*subscription]struct{}
	pumps sync.WaitGroup
	over  bool
	// endOnOverflow: Chrome ends if one of subs overflows.
	endOnOverflow bool
}

var _ cdp.Session = (*Driver)(nil)

// Driver attaches a driver. The caller closes it, or the Mux, when done.
func (m *Mux) Driver(ctx context.Context) (*Driver, error) {
	d := &Driver{m: m, subs: map[*subscription]struct{}{}}
	d.lane, d.trusted = m.out.lane(m.opts.UnsentBytes), true
	d.event = d.publish
	d.gone = func() { d.finish("") }
	d.ended = d.finish
	m.mu.Lock()
	if err := m.requests.failure(); err != nil {
		m.mu.Unlock()
		return nil, err
	}
	m.users[d] = struct{}{}
	m.mu.Unlock()
	if err := m.attach(ctx, &d.peer, ""); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Account opens an account of the daemon's memory for the client that the driver serves; see
// [budget.Budget.Open]. It also counts the driver's messages that wait for Chrome. The
// caller closes the account.
func (d *Driver) Account(evict func()) *budget.Account {
	a := d.m.opts.Budget.Open(d.m, evict)
	d.m.out.mu.Lock()
	defer d.m.out.mu.Unlock()
	d.lane.held = a
	return a
}

// Close detaches the driver and every session that it attached, and ends its
// subscriptions. Calls in progress fail. It is idempotent.
func (d *Driver) Close() {
	d.m.mu.Lock()
	lost := d.m.requests.losses(&d.peer)
	left := d.left
	delete(d.m.users, d)
	d.m.mu.Unlock()
	if !left {
		d.m.leave(&d.peer)
	}
	for _, f := range lost {
		f()
	}
	d.stop()
	d.pumps.Wait()
}

// Call runs a command on the browser. An error answer of Chrome is a *cdproto.Error. If
// the pipe has ended, Call fails at once with browser_failed.
func (d *Driver) Call(ctx context.Context, method string, params, result any) error {
	return d.call(ctx, "", method, params, result)
}

// Subscribe returns the parameters of one event of the browser's session, in order. The
// channel is closed by cancel or at the end of the session. Its size is bounded as that
// of Events.
func (d *Driver) Subscribe(method string) (<-chan jsonv2.Value, func()) {
	return d.subscribe("", method)
}

// Session returns the driver's session of one target. id comes from Target.attachToTarget
// with flatten, or from an auto-attach. Calls on a detached session fail with Chrome's
// error -32001.
func (d *Driver) Session(id target.SessionID) cdp.Session {
	return &child{d, string(id)}
}

type child struct {
	d  *Driver
	id string
}

func (c *child) Call(ctx context.Context, method string, params, result any) error {
	return c.d.call(ctx, c.id, method, params, result)
}

func (c *child) Subscribe(method string) (<-chan jsonv2.Value, func()) {
	return c.d.subscribe(c.id, method)
}

// errDetached is the error of a call whose session was detached in the meantime.
func errDetached() error {
	return &cdproto.Error{Code: codeNoSession, Message: "Session with given id not found."}
}

func (d *Driver) call(ctx context.Context, session, method string, params, result any) error {
	var raw []byte
	if params != nil {
		var err error
		if raw, err = jsonv2.Marshal(params, jsonv2.AllowInvalidUTF8(true)); err != nil {
			return fault.Wrap(err, fault.Internal, "mux.call "+method, "")
		}
	}
	var name []byte
	if session != "" {
		name = []byte(session)
	}
	s := d.m.lookup(&d.peer, name)
	if s == nil {
		if err := d.m.Err(); err != nil {
			return err
		}
		return errDetached()
	}
	if method == "Browser.close" {
		d.m.AllowLastClose()
	}
	got := make(chan envelope, 1)
	lost := make(chan struct{})
	var once sync.Once
	p := &pending{
		peer: &d.peer, session: s.id, method: method,
		answer: func(e envelope) { got <- e },
		lost:   func() { once.Do(func() { close(lost) }) },
	}
	p.keep(raw)
	id, err := d.m.requests.register(p)
	if err != nil {
		return err
	}
	if err := d.lane.send(ctx, request(id, s.id, []byte(method), raw)); err != nil {
		d.m.requests.forget(id)
		if errors.Is(err, errClosed) {
			return d.m.Err()
		}
		return err
	}
	select {
	case e := <-got:
		return decode(e, method, result)
	case <-lost:
		if err := d.m.Err(); err != nil {
			return err
		}
		return errDetached()
	case <-ctx.Done():
		d.m.requests.forget(id)
		return ctx.Err()
	}
}

func decode(e envelope, method string, result any) error {
	if e.err != nil {
		failed := new(cdproto.Error)
		if err := jsonv2.Unmarshal(e.err, failed); err != nil {
			return fault.Wrap(err, fault.BrowserFailed, "mux.call "+method, "")
		}
		return failed
	}
	if result == nil {
		return nil
	}
	err := jsonv2.Unmarshal(e.result, result, jsonv2.AllowInvalidUTF8(true))
	return fault.Wrap(err, fault.BrowserFailed, "mux.call "+method, "")
}
