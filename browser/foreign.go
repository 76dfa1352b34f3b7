package browser

import (
	"context"
	"errors"
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

// guard makes the rules of what targets may show hold in this browser.
func (b *Browser) guard() {
	b.mux.Hooks.OnForeign(func(id target.ID) {
		b.sendingAway.Go(func() { b.sendAway(id) })
	})
	b.mux.Hooks.OnDrop(b.readyDrop)
}

// takeOptions sets what the browser is for, and which extensions are its own.
func (b *Browser) takeOptions(o Options) {
	b.options = o
	ids := make([]string, 0, len(o.Extensions))
	for _, e := range o.Extensions {
		ids = append(ids, e.ID)
	}
	b.mux.Addresses.SetExtensions(ids)
}

// sendAway sends a page to about:blank that shows what it may not, and takes what it
// showed off its back list. A page that does not leave in time is closed.
func (b *Browser) sendAway(id target.ID) {
	ctx, cancel := context.WithTimeout(b.ctx, awayDeadline)
	defer cancel()
	again := time.NewTicker(pruneAgain)
	defer again.Stop()
	for ctx.Err() == nil {
		// What the page was turning to may end this navigation: the list says where it is.
		_ = b.toBlank(ctx, id)
		if b.emptyBackList(ctx, id) == nil && b.mux.Settle(id) {
			return
		}
		select {
		case <-again.C:
		case <-b.mux.Gone(id):
			return
		case <-ctx.Done():
		}
	}
	if b.ctx.Err() == nil {
		// One that has gone meanwhile needs nothing.
		_ = b.driver.Post(b.ctx, "", target.CloseTarget.Method, target.CloseTargetParams{TargetID: id})
	}
}

func (b *Browser) toBlank(ctx context.Context, id target.ID) error {
	return b.attached(ctx, id, func(at target.SessionID) error {
		s := b.driver.Session(at)
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
					_ = b.driver.Post(ctx, at, page.HandleJavaScriptDialog.Method, page.HandleJavaScriptDialogParams{Accept: true}) // of a lost pipe nothing is left
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
// whose sites do not answer in time are emptied later.
func (b *Browser) prune(ids []target.ID) {
	done := make(chan struct{}, len(ids))
	for _, id := range ids {
		b.background.Go(func() {
			defer func() { done <- struct{}{} }()
			ctx, cancel := context.WithTimeout(b.ctx, restore.SettleDeadline)
			defer cancel()
			_ = b.emptyBackList(ctx, id) // clients may not go to the entries, and what turns to one is sent away
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
func (b *Browser) emptyBackList(ctx context.Context, id target.ID) error {
	return b.attached(ctx, id, func(at target.SessionID) error {
		s := b.driver.Session(at)
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
		if err == nil && b.leadsAway(&history) {
			err = errStillForeign
		}
		return err
	})
}

var errStillForeign = errors.New("the page shows what the session may not")

// leadsAway says whether a back list has an entry that a session may not show.
func (b *Browser) leadsAway(history *page.GetNavigationHistoryResult) bool {
	for _, e := range history.Entries {
		if b.mux.Addresses.Foreign(e.URL) {
			return true
		}
	}
	return false
}
