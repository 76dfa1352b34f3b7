package restore

import (
	"context"
	"slices"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
)

// firstDocumentDeadline bounds the wait for the tabs' first documents, so that a slow
// site does not delay the restore. A document that has come may add keyDeadline.
const firstDocumentDeadline = time.Second

// addressDeadline bounds the wait for the tabs' addresses. addressPause is the interval
// between two queries.
const (
	addressDeadline = 5 * time.Second
	addressPause    = 5 * time.Millisecond
)

// startLoading makes Chrome report a tab's first document, for which awaitDocuments
// waits.
func (h *Tabs) startLoading(t *heldTab) {
	t.loading = true
	h.post(t.session, page.Enable.Method, nil)
}

// awaitDocuments returns once the loading tabs have their first documents and addresses,
// or at its deadline. A client that connects at once then finds the tabs at their
// addresses.
func (h *Tabs) awaitDocuments(ctx context.Context) {
	h.awaitAddresses(ctx, h.firstDocuments(ctx))
}

// firstDocuments waits for the first documents only. It returns the tabs that load.
func (h *Tabs) firstDocuments(ctx context.Context) (loading []target.ID) {
	for _, t := range h.tabs {
		if t.loading {
			loading = append(loading, t.info.TargetID)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, firstDocumentDeadline)
	defer cancel()
	for h.anyLoading() && ctx.Err() == nil {
		select {
		case e, ok := <-h.events:
			if !ok {
				return loading // the next call reports the lost connection
			}
			h.handle(e)
		case <-ctx.Done():
			return loading
		}
	}
	return loading
}

// awaitAddresses returns once Chrome gives each of these tabs an address, or at its
// deadline. Chromium 156 briefly gives none ("") between a blank tab and its first
// document, and Puppeteer does not list a page without an address.
func (h *Tabs) awaitAddresses(ctx context.Context, tabs []target.ID) {
	ctx, cancel := context.WithTimeout(ctx, addressDeadline)
	defer cancel()
	pause := time.NewTicker(addressPause)
	defer pause.Stop()
	for {
		pages, err := capture.Pages(ctx, h.env.Driver)
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

func (h *Tabs) anyLoading() bool {
	for _, t := range h.tabs {
		if t.loading {
			return true
		}
	}
	return false
}

// documentShown records that a tab has its first document.
func (h *Tabs) documentShown(at target.SessionID) {
	for _, t := range h.tabs {
		if t.session != at || !t.loading {
			continue
		}
		t.loading = false
		if t.script == nil {
			h.post(t.session, page.Disable.Method, nil)
		}
	}
}
