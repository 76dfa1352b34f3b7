package browser

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/restore"
)

// redirectDeadline bounds how long a page may take to navigate to about:blank. A page that
// takes longer is closed.
const redirectDeadline = 10 * time.Second

// pruneTimeout bounds how long a restore waits until back lists are emptied.
// pruneInterval is the time between two attempts.
const (
	pruneTimeout  = 5 * time.Second
	pruneInterval = 50 * time.Millisecond
)

// guard keeps tabs away from addresses that a session may not show.
type guard struct {
	tabs *tabs
	// sending counts the pages that are being sent to about:blank. They start at any time,
	// on the mux's reader, so only the end of the browser waits for them.
	sending sync.WaitGroup
}

// start begins to enforce which addresses targets may show.
func (g *guard) start() {
	g.tabs.mux.Hooks.OnForeign(func(id target.ID) {
		g.sending.Go(func() { g.redirect(id) })
	})
}

// redirect sends a page to about:blank and removes the address that it showed from its
// back list. A page that does not leave in time is closed.
func (g *guard) redirect(id target.ID) {
	ctx, cancel := context.WithTimeout(g.tabs.life, redirectDeadline)
	defer cancel()
	again := time.NewTicker(pruneInterval)
	defer again.Stop()
	for ctx.Err() == nil {
		// The page's own navigation may abort this one. The back list shows where it is.
		_ = g.toBlank(ctx, id)
		if g.emptyBackList(ctx, id) == nil && g.tabs.mux.RevealIfAllowed(id) {
			return
		}
		select {
		case <-again.C:
		case <-g.tabs.mux.TargetClosed(id):
			return
		case <-ctx.Done():
		}
	}
	if g.tabs.life.Err() == nil {
		// If the page has closed in the meantime, the command fails, which is fine.
		_ = g.tabs.driver.Post(g.tabs.life, "", target.CloseTarget.Method, target.CloseTargetParams{TargetID: id})
	}
}

func (g *guard) toBlank(ctx context.Context, id target.ID) error {
	return g.tabs.attached(ctx, id, func(at target.SessionID) error {
		s := g.tabs.driver.Session(at)
		asks, stop := s.Subscribe(page.JavascriptDialogOpening.Method) // the page may ask for confirmation before it is left
		defer stop()
		answered := make(chan struct{})
		defer func() { <-answered }()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			defer close(answered)
			for {
				select {
				case _, ok := <-asks:
					if !ok {
						return
					}
					_ = g.tabs.driver.Post(ctx, at, page.HandleJavaScriptDialog.Method, page.HandleJavaScriptDialogParams{Accept: true}) // it fails only with the pipe, and then all has ended
				case <-ctx.Done():
					return
				}
			}
		}()
		_, err := navigate(ctx, s, blankURL)
		return err
	})
}

// prune empties the back lists of running tabs and waits until that is done. After
// pruneTimeout the rest is emptied in the background.
func (g *guard) prune(ids []target.ID, background func(func())) {
	done := make(chan struct{}, len(ids))
	for _, id := range ids {
		background(func() {
			defer func() { done <- struct{}{} }()
			ctx, cancel := context.WithTimeout(g.tabs.life, restore.SettleDeadline)
			defer cancel()
			_ = g.emptyBackList(ctx, id) // the mux blocks the entries for clients, and the guard handles pages that navigate to one
		})
	}
	late := time.NewTimer(pruneTimeout)
	defer late.Stop()
	for range ids {
		select {
		case <-done:
		case <-late.C:
			return
		}
	}
}

// emptyBackList removes all entries except the current one from a page's back list. While
// a page loads Chrome refuses that ("Not attached to an active page"), so it is repeated.
// The error is errStillForeign if the session may not show the current entry.
func (g *guard) emptyBackList(ctx context.Context, id target.ID) error {
	return g.tabs.attached(ctx, id, func(at target.SessionID) error {
		s := g.tabs.driver.Session(at)
		again := time.NewTicker(pruneInterval)
		defer again.Stop()
		for {
			_, err := cdp.Call(ctx, s, page.ResetNavigationHistory, cdp.Empty{})
			if err == nil {
				break
			}
			select {
			case <-again.C:
			case <-ctx.Done():
				return err
			}
		}
		history, err := cdp.Call(ctx, s, page.GetNavigationHistory, cdp.Empty{})
		if err == nil && g.hasForeign(&history) {
			err = errStillForeign
		}
		return err
	})
}

var errStillForeign = errors.New("the page is at an address that the session may not show")

// hasForeign reports whether a back list has an entry that a session may not show.
func (g *guard) hasForeign(history *page.GetNavigationHistoryResult) bool {
	for _, e := range history.Entries {
		if g.tabs.mux.Addresses.Foreign(e.URL) {
			return true
		}
	}
	return false
}
