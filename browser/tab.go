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
	// leftover are those of the empty profile that the environment was loaded beside.
	leftover leftover
}

// attached attaches to a target, calls f with the session, and detaches. The error is
// Chrome's where it does not attach, else that of f.
func (t *tabs) attached(ctx context.Context, id target.ID, f func(id target.SessionID) error) error {
	yes := true
	at, err := cdp.Call(ctx, t.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &yes})
	if err != nil {
		return err
	}
	defer func() {
		_ = t.driver.Post(t.life, "", target.DetachFromTarget.Method, target.DetachFromTargetParams(at)) // of a lost pipe nothing is left
	}()
	return f(at.SessionID)
}

// closeTabDeadline bounds how long a blank tab may take to go, which is a matter
// of milliseconds.
const closeTabDeadline = 5 * time.Second

// close closes a tab that shows nothing and returns once it has gone; one that
// is gone already is closed.
// Chrome answers before that (CDP Target.closeTarget), and a client that
// connects in between would take the dying tab for its page.
func (t *tabs) close(ctx context.Context, id target.ID) error {
	gone := t.mux.Gone(id)
	ctx, cancel := context.WithTimeout(ctx, closeTabDeadline)
	defer cancel()
	if _, err := cdp.Call(ctx, t.driver, target.CloseTarget, target.CloseTargetParams{TargetID: id}); err != nil {
		select {
		case <-gone: // whoever closed it did not stay to hear of it
			return nil
		default:
			return err
		}
	}
	select {
	case <-gone:
		return nil
	case <-t.mux.Done():
		return t.mux.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// firstTabDeadline bounds the wait for a Chrome's first tab.
const firstTabDeadline = 20 * time.Second

// awaitFirst returns once Chrome has opened its first tab. Chrome answers over
// CDP before that: who asked in between would find no page, or be given a
// second one beside it.
func (t *tabs) awaitFirst(ctx context.Context) error {
	const op = "browser.start"
	ctx, cancel := context.WithTimeout(ctx, firstTabDeadline)
	defer cancel()
	select {
	case <-t.mux.Paged():
		return nil
	case <-t.mux.Done():
		return fault.Wrap(t.mux.Err(), fault.BrowserFailed, op, "Chrome's first tab was not found")
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.BrowserFailed, op, "Chrome opened no tab")
	}
}

// leftover are the tabs of the empty profile that an environment was loaded
// beside. Clients never see them. That they close keeps Chrome from all else for
// as long as a third of a restore takes (its window goes, and the profile with
// it), so it waits for a moment in which nobody asks for anything.
type leftover struct {
	mu   sync.Mutex
	tabs []*target.Info
}

// alone returns once the environment's own tabs are all that Chrome has: whoever
// looks at the tabs asks for that first.
func (t *tabs) alone(ctx context.Context) error {
	l := &t.leftover
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.tabs) > 0 {
		if err := t.close(ctx, l.tabs[0].TargetID); err != nil {
			return fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the empty profile could not be closed")
		}
		l.tabs = l.tabs[1:]
	}
	return nil
}
