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

// awayDeadline bounds how long a page may take to leave for about:blank; one that
// does not is closed.
const awayDeadline = 10 * time.Second

// pruneTime is how long a restore waits for back lists that are to be emptied, and
// pruneAgain how soon Chrome is asked again.
const (
	pruneTime  = 5 * time.Second
	pruneAgain = 50 * time.Millisecond
)

// guard holds the tabs to what a session may show.
type guard struct {
	tabs *tabs
	// sending are the pages that leave for about:blank. They begin at any time, on the
	// multiplexer's reader, so only the end of the browser waits for them.
	sending sync.WaitGroup
}

// start makes the rules of what targets may show hold from now on.
func (g *guard) start() {
	g.tabs.mux.Hooks.OnForeign(func(id target.ID) {
		g.sending.Go(func() { g.sendAway(id) })
	})
}

// sendAway sends a page to about:blank that shows what it may not, and takes what it
// showed off its back list. A page that does not leave in time is closed.
func (g *guard) sendAway(id target.ID) {
	ctx, cancel := context.WithTimeout(g.tabs.life, awayDeadline)
	defer cancel()
	again := time.NewTicker(pruneAgain)
	defer again.Stop()
	for ctx.Err() == nil {
		// What the page was turning to may end this navigation: the list says where it is.
		_ = g.toBlank(ctx, id)
		if g.emptyBackList(ctx, id) == nil && g.tabs.mux.Settle(id) {
			return
		}
		select {
		case <-again.C:
		case <-g.tabs.mux.Gone(id):
			return
		case <-ctx.Done():
		}
	}
	if g.tabs.life.Err() == nil {
		// One that has gone meanwhile needs nothing.
		_ = g.tabs.driver.Post(g.tabs.life, "", target.CloseTarget.Method, target.CloseTargetParams{TargetID: id})
	}
}

func (g *guard) toBlank(ctx context.Context, id target.ID) error {
	return g.tabs.attached(ctx, id, func(at target.SessionID) error {
		s := g.tabs.driver.Session(at)
		asks, stop := s.Subscribe(page.JavascriptDialogOpening.Method) // of a page that asks before it is left
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
					_ = g.tabs.driver.Post(ctx, at, page.HandleJavaScriptDialog.Method, page.HandleJavaScriptDialogParams{Accept: true}) // of a lost pipe nothing is left
				case <-ctx.Done():
					return
				}
			}
		}()
		_, err := navigate(ctx, s, blankURL)
		return err
	})
}

// prune empties the back lists of tabs that run, and returns when that is done. Those
// whose sites do not answer in time are emptied later, in the background.
func (g *guard) prune(ids []target.ID, background func(func())) {
	done := make(chan struct{}, len(ids))
	for _, id := range ids {
		background(func() {
			defer func() { done <- struct{}{} }()
			ctx, cancel := context.WithTimeout(g.tabs.life, restore.SettleDeadline)
			defer cancel()
			_ = g.emptyBackList(ctx, id) // clients may not go to the entries, and what turns to one is sent away
		})
	}
	late := time.NewTimer(pruneTime)
	defer late.Stop()
	for range ids {
		select {
		case <-done:
		case <-late.C:
			return
		}
	}
}

// emptyBackList leaves a page's current entry alone in its list. While a page loads
// Chrome refuses that ("Not attached to an active page"), so it is asked again. The
// error is errStillForeign where that entry is one that the session may not show.
func (g *guard) emptyBackList(ctx context.Context, id target.ID) error {
	return g.tabs.attached(ctx, id, func(at target.SessionID) error {
		s := g.tabs.driver.Session(at)
		again := time.NewTicker(pruneAgain)
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
		if err == nil && g.leadsAway(&history) {
			err = errStillForeign
		}
		return err
	})
}

var errStillForeign = errors.New("the page shows what the session may not")

// leadsAway says whether a back list has an entry that a session may not show.
func (g *guard) leadsAway(history *page.GetNavigationHistoryResult) bool {
	for _, e := range history.Entries {
		if g.tabs.mux.Addresses.Foreign(e.URL) {
			return true
		}
	}
	return false
}
