package browser

import (
	"context"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
)

// tabs opens, closes and attaches to the tabs of one Chrome.
type tabs struct {
	driver *mux.Driver
	mux    *mux.Mux
	life   context.Context // ends with the browser
	// leftover holds the spare's blank tabs, until they are closed.
	leftover leftover
}

// attached attaches to a target, calls f with the session, and detaches. It returns
// Chrome's error if attaching fails, else the error of f.
func (t *tabs) attached(ctx context.Context, id target.ID, f func(id target.SessionID) error) error {
	yes := true
	at, err := cdp.Call(ctx, t.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &yes})
	if err != nil {
		return err
	}
	defer func() {
		_ = t.driver.Post(t.life, "", target.DetachFromTarget.Method, target.DetachFromTargetParams(at)) // it fails only with the pipe, and then all has ended
	}()
	return f(at.SessionID)
}

// closeTabDeadline bounds how long a blank tab may take to close, which takes
// milliseconds.
const closeTabDeadline = 5 * time.Second

// close closes a blank tab and returns once it has closed. A tab that has closed already
// is no error. Chrome answers before the tab has closed (CDP Target.closeTarget), and a
// client that connects in between would use the closing tab as its page.
func (t *tabs) close(ctx context.Context, id target.ID) error {
	closed := t.mux.TargetClosed(id)
	ctx, cancel := context.WithTimeout(ctx, closeTabDeadline)
	defer cancel()
	if _, err := cdp.Call(ctx, t.driver, target.CloseTarget, target.CloseTargetParams{TargetID: id}); err != nil {
		select {
		case <-closed: // something else closed it
			return nil
		default:
			return err
		}
	}
	select {
	case <-closed:
		return nil
	case <-t.mux.Done():
		return t.mux.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// firstTabDeadline bounds the wait for a Chrome's first tab.
const firstTabDeadline = 20 * time.Second

// awaitFirst returns once Chrome has opened its first tab. Chrome answers CDP commands
// before that. A caller that used it earlier would find no page, or open a second one.
func (t *tabs) awaitFirst(ctx context.Context) error {
	const op = "browser.start"
	ctx, cancel := context.WithTimeout(ctx, firstTabDeadline)
	defer cancel()
	select {
	case <-t.mux.FirstPage():
		return nil
	case <-t.mux.Done():
		return fault.Wrap(t.mux.Err(), fault.BrowserFailed, op, "Chrome's first tab was not found")
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.BrowserFailed, op, "Chrome opened no tab")
	}
}

// leftover holds the tabs of the empty profile beside which an environment was loaded, or
// the blank tab of the window that its tabs have joined. Clients never see them. Closing
// them blocks Chrome for up to a third of a restore's time, because in the first case it
// also closes a window and a profile. So they are closed when clients are idle.
type leftover struct {
	mu   sync.Mutex
	tabs []*target.Info
}

// closeLeftover closes the leftover tabs and returns once Chrome has only the
// environment's own tabs. Code that lists the tabs calls it first.
func (t *tabs) closeLeftover(ctx context.Context) error {
	l := &t.leftover
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.tabs) > 0 {
		if err := t.close(ctx, l.tabs[0].TargetID); err != nil {
			return fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the spare's blank tabs could not be closed")
		}
		l.tabs = l.tabs[1:]
	}
	return nil
}
