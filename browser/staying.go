package browser

import (
	"context"
	"sync"

	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/mux"
)

// staying is the driver for those who read pages that have an authenticator: it
// stays attached to them when it is told to detach, and uses that session again.
// With any session of a page that ends, Chrome ends the page's authenticator,
// and a sign-in that is under way there is never answered.
type staying struct {
	*mux.Driver
	stays func(target.ID) bool // whether a target is such a page

	mu   sync.Mutex
	used map[target.SessionID]target.ID
	idle map[target.ID][]target.SessionID
}

var _ capture.Conn = (*staying)(nil)

func newStaying(d *mux.Driver, stays func(target.ID) bool) *staying {
	return &staying{Driver: d, stays: stays, used: map[target.SessionID]target.ID{}, idle: map[target.ID][]target.SessionID{}}
}

// Call runs a command on the browser as the driver does, but for attaching to
// such a page and detaching from it.
func (s *staying) Call(ctx context.Context, method string, params, result any) error {
	switch p := params.(type) {
	case target.AttachToTargetParams:
		at, plain := result.(*target.AttachToTargetResult)
		if !plain || !s.stays(p.TargetID) {
			break
		}
		if id, some := s.take(p.TargetID); some {
			at.SessionID = id
			return nil
		}
		err := s.Driver.Call(ctx, method, params, result)
		if err == nil {
			s.mu.Lock()
			s.used[at.SessionID] = p.TargetID
			s.mu.Unlock()
		}
		return err
	case target.DetachFromTargetParams:
		if s.rest(ctx, p.SessionID) {
			return nil
		}
	}
	return s.Driver.Call(ctx, method, params, result)
}

// take gives a session of a page that nobody uses.
func (s *staying) take(page target.ID) (target.SessionID, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.idle[page])
	if n == 0 {
		return "", false
	}
	id := s.idle[page][n-1]
	s.idle[page] = s.idle[page][:n-1]
	s.used[id] = page
	return id, true
}

// rest takes a session back and leaves it attached; its subscriptions end as
// those of one that is detached. It reports whether the session is one of these.
func (s *staying) rest(ctx context.Context, id target.SessionID) bool {
	s.mu.Lock()
	at, one := s.used[id]
	delete(s.used, id)
	s.mu.Unlock()
	if !one {
		return false
	}
	// The two domains that readers enable. A page that has gone has none.
	_ = s.Post(ctx, id, inspector.Disable.Method, nil)
	_ = s.Post(ctx, id, page.Disable.Method, nil)
	s.Silence(id)
	if s.stays(at) {
		s.mu.Lock()
		s.idle[at] = append(s.idle[at], id)
		s.mu.Unlock()
	}
	return true
}

// forget is told of a page that has gone.
func (s *staying) forget(gone target.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.idle, gone)
}

// has says whether a target is a page with an authenticator.
func (p *passkeys) has(id target.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.devices {
		if d.page.info.TargetID == id {
			return true
		}
	}
	return false
}

// reader is the driver for those who attach to pages to read them.
func (b *Browser) reader() capture.Conn {
	if b.passkeys == nil {
		return b.driver
	}
	return b.passkeys.reader
}
