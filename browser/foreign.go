package browser

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
)

// awayDeadline bounds how long a page may take to leave for about:blank; one that
// does not is closed.
const awayDeadline = 10 * time.Second

// guard makes the rules of what targets may show hold in this browser.
func (b *Browser) guard() {
	b.mux.OnForeign(func(id target.ID) {
		b.background.Go(func() { b.sendAway(id) })
	})
	b.mux.OnDrop(b.readyDrop)
}

// takeOptions sets what the browser is for, and which extensions are its own.
func (b *Browser) takeOptions(o Options) {
	b.options = o
	ids := make([]string, 0, len(o.Extensions))
	for _, e := range o.Extensions {
		ids = append(ids, e.ID)
	}
	b.mux.SetExtensions(ids)
}

// sendAway sends a page to about:blank that shows what it may not, and takes what it
// showed off its back list. A page that does not leave is closed.
func (b *Browser) sendAway(id target.ID) {
	ctx, cancel := context.WithTimeout(b.ctx, awayDeadline)
	defer cancel()
	if err := b.toBlank(ctx, id); err != nil && b.ctx.Err() == nil {
		// One that has gone meanwhile needs nothing.
		_ = b.driver.Post(b.ctx, "", target.CloseTarget.Method, target.CloseTargetParams{TargetID: id})
	}
}

func (b *Browser) toBlank(ctx context.Context, id target.ID) error {
	yes := true
	at, err := cdp.Call(ctx, b.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &yes})
	if err != nil {
		return err
	}
	defer func() {
		_ = b.driver.Post(b.ctx, "", target.DetachFromTarget.Method, target.DetachFromTargetParams{SessionID: at.SessionID}) // of a lost pipe nothing is left
	}()
	s := b.driver.Session(at.SessionID)
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
				_ = b.driver.Post(ctx, at.SessionID, page.HandleJavaScriptDialog.Method, page.HandleJavaScriptDialogParams{Accept: true}) // as above
			case <-ctx.Done():
				return
			}
		}
	}()
	if _, err := navigate(ctx, s, blankURL); err != nil {
		return err
	}
	_, err = cdp.Call(ctx, s, page.ResetNavigationHistory, cdp.Empty{})
	return err
}

// prune takes what a session may not show off the held tabs' back lists, before they
// run: a page could go back to it. A tab that Chrome does not let go of such an entry
// is closed.
func (h *hold) prune(ctx context.Context) {
	if !mux.TargetPolicy {
		return
	}
	for _, t := range h.tabs {
		history, err := h.historyOf(ctx, t)
		if err != nil || !h.b.leadsAway(history) {
			continue
		}
		_, err = cdp.Call(ctx, h.b.driver.Session(t.session), page.ResetNavigationHistory, cdp.Empty{})
		if history, err = h.historyOf(ctx, t); err == nil {
			t.history = history
		}
	}
}

// leadsAway says whether a back list has an entry that a session may not show.
func (b *Browser) leadsAway(history *page.GetNavigationHistoryResult) bool {
	for _, e := range history.Entries {
		if b.mux.ForeignURL(e.URL) {
			return true
		}
	}
	return false
}
