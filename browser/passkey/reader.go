package passkey

import (
	"context"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
)

// Driver is the daemon's CDP connection over which pages are read; see [capture.Conn].
type Driver interface {
	cdp.Session // of the browser
	// Session returns the session of a target that the connection is attached to.
	Session(id target.SessionID) cdp.Session
	// Post sends a command to a session and does not wait for the answer.
	Post(ctx context.Context, session target.SessionID, method string, params any) error
	// EndSubscriptions ends the subscriptions of a session that stays attached.
	EndSubscriptions(session target.SessionID)
	// OpenHidden, Hidden, CreationOrder, LastShown, Temporary and Paused are as in [capture.Conn].
	OpenHidden(ctx context.Context) (target.ID, error)
	Hidden(id target.ID) bool
	CreationOrder(id target.ID) int
	LastShown(id target.ID) int
	Temporary(id target.ID) bool
	Paused(id target.ID) bool
}

// Reader is a connection for reading pages that have an authenticator. When its caller
// detaches from such a page, Reader keeps the session attached and reuses it. Whenever a
// session of a page ends, Chrome removes the page's authenticator, and a sign-in in
// progress there never gets an answer.
type Reader struct {
	driver Driver
	keeps  func(target.ID) bool // whether a target has an authenticator

	mu   sync.Mutex
	used map[target.SessionID]target.ID
	idle map[target.ID][]target.SessionID
}

var _ capture.Conn = (*Reader)(nil)

func newReader(d Driver, keeps func(target.ID) bool) *Reader {
	return &Reader{driver: d, keeps: keeps, used: map[target.SessionID]target.ID{}, idle: map[target.ID][]target.SessionID{}}
}

// Reader returns the connection for attaching to pages and reading them.
func (p *Authenticators) Reader() *Reader { return p.reader }

// Subscribe returns the events of a method on the browser's session.
func (r *Reader) Subscribe(method string) (<-chan jsonv2.Value, func()) {
	return r.driver.Subscribe(method)
}

// Session returns the session of a target.
func (r *Reader) Session(id target.SessionID) cdp.Session { return r.driver.Session(id) }

// OpenHidden opens a blank tab that does not belong to the environment.
func (r *Reader) OpenHidden(ctx context.Context) (target.ID, error) { return r.driver.OpenHidden(ctx) }

// Hidden reports whether OpenHidden opened a target.
func (r *Reader) Hidden(id target.ID) bool { return r.driver.Hidden(id) }

// CreationOrder orders targets by their time of creation.
func (r *Reader) CreationOrder(id target.ID) int { return r.driver.CreationOrder(id) }

// LastShown orders targets by when they came to the front.
func (r *Reader) LastShown(id target.ID) int { return r.driver.LastShown(id) }

// Temporary reports whether a page closes with a client.
func (r *Reader) Temporary(id target.ID) bool { return r.driver.Temporary(id) }

// Paused reports whether a client keeps a page paused at its start.
func (r *Reader) Paused(id target.ID) bool { return r.driver.Paused(id) }

// Call runs a command on the browser as the driver does. Attaching to a page with an
// authenticator, and detaching from it, reuse sessions.
func (r *Reader) Call(ctx context.Context, method string, params, result any) error {
	switch p := params.(type) {
	case target.AttachToTargetParams:
		at, plain := result.(*target.AttachToTargetResult)
		if !plain || !r.keeps(p.TargetID) {
			break
		}
		if id, some := r.reuse(p.TargetID); some {
			at.SessionID = id
			return nil
		}
		err := r.driver.Call(ctx, method, params, result)
		if err == nil {
			r.mu.Lock()
			r.used[at.SessionID] = p.TargetID
			r.mu.Unlock()
		}
		return err
	case target.DetachFromTargetParams:
		if r.giveBack(ctx, p.SessionID) {
			return nil
		}
	}
	return r.driver.Call(ctx, method, params, result)
}

// reuse returns an unused session of a page.
func (r *Reader) reuse(page target.ID) (target.SessionID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.idle[page])
	if n == 0 {
		return "", false
	}
	id := r.idle[page][n-1]
	r.idle[page] = r.idle[page][:n-1]
	r.used[id] = page
	return id, true
}

// giveBack takes a session back and leaves it attached. Its subscriptions end, as if it
// were detached. rest reports whether the session is one of the reader's.
func (r *Reader) giveBack(ctx context.Context, id target.SessionID) bool {
	r.mu.Lock()
	at, one := r.used[id]
	delete(r.used, id)
	r.mu.Unlock()
	if !one {
		return false
	}
	// These are the two domains that readers enable. A closed page has none.
	_ = r.driver.Post(ctx, id, inspector.Disable.Method, nil)
	_ = r.driver.Post(ctx, id, page.Disable.Method, nil)
	r.driver.EndSubscriptions(id)
	if r.keeps(at) {
		r.mu.Lock()
		r.idle[at] = append(r.idle[at], id)
		r.mu.Unlock()
	}
	return true
}

// forget forgets a closed page.
func (r *Reader) forget(gone target.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.idle, gone)
}

// has reports whether a target is a page with an authenticator.
func (p *Authenticators) has(id target.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.pages {
		if d.page.Info().TargetID == id {
			return true
		}
	}
	return false
}
