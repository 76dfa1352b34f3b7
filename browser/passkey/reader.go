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

// Driver is the daemon's CDP connection by which pages are read; see [capture.Conn].
type Driver interface {
	cdp.Session // of the browser
	// Session is the session of a target that the connection is attached to.
	Session(id target.SessionID) cdp.Session
	// Post sends a command to a session and does not wait for the answer.
	Post(ctx context.Context, session target.SessionID, method string, params any) error
	// Silence ends the subscriptions of a session that stays attached.
	Silence(session target.SessionID)
	// OpenHidden, Hidden and Born are those of [capture.Conn].
	OpenHidden(ctx context.Context) (target.ID, error)
	Hidden(id target.ID) bool
	Born(id target.ID) int
}

// Reader is a connection for those who read pages that have an authenticator. It
// stays attached to such a page when it is asked to detach, and uses that session
// again. With any session of a page that ends, Chrome ends the page's authenticator,
// and a sign-in that is under way there is never answered.
type Reader struct {
	driver Driver
	stays  func(target.ID) bool // whether a target has an authenticator

	mu   sync.Mutex
	used map[target.SessionID]target.ID
	idle map[target.ID][]target.SessionID
}

var _ capture.Conn = (*Reader)(nil)

func newReader(d Driver, stays func(target.ID) bool) *Reader {
	return &Reader{driver: d, stays: stays, used: map[target.SessionID]target.ID{}, idle: map[target.ID][]target.SessionID{}}
}

// Reader is the connection for those who attach to pages to read them.
func (p *Authenticators) Reader() *Reader { return p.reader }

// Subscribe gives an event of the browser's session.
func (r *Reader) Subscribe(method string) (<-chan jsonv2.Value, func()) {
	return r.driver.Subscribe(method)
}

// Session is the session of a target.
func (r *Reader) Session(id target.SessionID) cdp.Session { return r.driver.Session(id) }

// OpenHidden opens a blank tab that is no part of the environment.
func (r *Reader) OpenHidden(ctx context.Context) (target.ID, error) { return r.driver.OpenHidden(ctx) }

// Hidden reports whether OpenHidden opened a target.
func (r *Reader) Hidden(id target.ID) bool { return r.driver.Hidden(id) }

// Born orders targets by when they were made.
func (r *Reader) Born(id target.ID) int { return r.driver.Born(id) }

// Call runs a command on the browser as the driver does, but for attaching to
// such a page and detaching from it.
func (r *Reader) Call(ctx context.Context, method string, params, result any) error {
	switch p := params.(type) {
	case target.AttachToTargetParams:
		at, plain := result.(*target.AttachToTargetResult)
		if !plain || !r.stays(p.TargetID) {
			break
		}
		if id, some := r.take(p.TargetID); some {
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
		if r.rest(ctx, p.SessionID) {
			return nil
		}
	}
	return r.driver.Call(ctx, method, params, result)
}

// take gives a session of a page that nobody uses.
func (r *Reader) take(page target.ID) (target.SessionID, bool) {
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

// rest takes a session back and leaves it attached; its subscriptions end as
// those of one that is detached. It reports whether the session is one of these.
func (r *Reader) rest(ctx context.Context, id target.SessionID) bool {
	r.mu.Lock()
	at, one := r.used[id]
	delete(r.used, id)
	r.mu.Unlock()
	if !one {
		return false
	}
	// The two domains that readers enable. A page that has gone has none.
	_ = r.driver.Post(ctx, id, inspector.Disable.Method, nil)
	_ = r.driver.Post(ctx, id, page.Disable.Method, nil)
	r.driver.Silence(id)
	if r.stays(at) {
		r.mu.Lock()
		r.idle[at] = append(r.idle[at], id)
		r.mu.Unlock()
	}
	return true
}

// forget forgets a page that has gone.
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
