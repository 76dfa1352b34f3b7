package browser

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
)

// firstTabDeadline bounds the wait for a Chrome's first tab.
const firstTabDeadline = 20 * time.Second

// awaitTab returns once Chrome has opened its first tab. Chrome answers over
// CDP before that: who asked in between would find no page, or be given a
// second one beside it.
func (b *Browser) awaitTab(ctx context.Context) error {
	const op = "browser.start"
	ctx, cancel := context.WithTimeout(ctx, firstTabDeadline)
	defer cancel()
	select {
	case <-b.mux.Paged():
		return nil
	case <-b.mux.Done():
		return fault.Wrap(b.mux.Err(), fault.BrowserFailed, op, "Chrome's first tab was not found")
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.BrowserFailed, op, "Chrome opened no tab")
	}
}
