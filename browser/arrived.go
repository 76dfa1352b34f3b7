package browser

import (
	"context"
	"slices"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
)

// arriveDeadline bounds the wait for the tabs' first documents: a slow site must
// not hold the restore up.
const arriveDeadline = 500 * time.Millisecond

// addressDeadline bounds the wait for the tabs' addresses, and addressPause is how
// often Chrome is asked for them.
const (
	addressDeadline = 5 * time.Second
	addressPause    = 5 * time.Millisecond
)

// depart has Chrome tell of a tab's first document; arrived waits for it.
func (h *hold) depart(t *heldTab) {
	t.departed = true
	h.post(t.session, page.Enable.Method, nil)
}

// arrived returns once the tabs that have departed have their first document, or
// at its deadline: a client that connects at once finds them at their addresses.
func (h *hold) arrived(ctx context.Context) {
	h.addressed(ctx, h.awaitDocuments(ctx))
}

// awaitDocuments is arrived without the addresses. It returns the tabs that departed.
func (h *hold) awaitDocuments(ctx context.Context) (departed []target.ID) {
	for _, t := range h.tabs {
		if t.departed {
			departed = append(departed, t.info.TargetID)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, arriveDeadline)
	defer cancel()
	for h.underWay() {
		select {
		case e, ok := <-h.events:
			if !ok {
				return departed // the next call tells
			}
			h.hear(ctx, e)
		case <-ctx.Done():
			return departed
		}
	}
	return departed
}

// addressed returns once Chrome gives each of these tabs an address, or at its
// deadline. Chromium 156 gives none ("") for a moment between a blank tab and its
// first document, and Puppeteer shows no page without one.
func (h *hold) addressed(ctx context.Context, tabs []target.ID) {
	ctx, cancel := context.WithTimeout(ctx, addressDeadline)
	defer cancel()
	pause := time.NewTicker(addressPause)
	defer pause.Stop()
	for {
		pages, err := capture.Pages(ctx, h.b.driver)
		if err != nil || !slices.ContainsFunc(pages, func(p *target.Info) bool {
			return p.URL == "" && slices.Contains(tabs, p.TargetID)
		}) {
			return
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
	}
}

func (h *hold) underWay() bool {
	for _, t := range h.tabs {
		if t.departed {
			return true
		}
	}
	return false
}

// shown notes that a tab has its first document.
func (h *hold) shown(at target.SessionID) {
	for _, t := range h.tabs {
		if t.session != at || !t.departed {
			continue
		}
		t.departed = false
		if t.laying == nil {
			h.post(t.session, page.Disable.Method, nil)
		}
	}
}
