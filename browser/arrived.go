package browser

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
)

// arriveDeadline bounds the wait for the tabs' first documents: a slow site must
// not hold the restore up.
const arriveDeadline = 500 * time.Millisecond

// depart has Chrome tell of a tab's first document; arrived waits for it.
func (h *hold) depart(t *heldTab) {
	t.departed = true
	h.post(t.session, page.Enable.Method, nil)
}

// arrived returns once the tabs that have departed have their first document, or
// at its deadline: a client that connects at once finds them at their addresses.
func (h *hold) arrived(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, arriveDeadline)
	defer cancel()
	for h.underWay() {
		select {
		case e, ok := <-h.events:
			if !ok {
				return // the next call tells
			}
			h.hear(ctx, e)
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
