package browser

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/fault"
)

// firstTabDeadline bounds the wait for a Chrome's first tab, and firstTabPause
// is how often it is looked for.
const (
	firstTabDeadline = 20 * time.Second
	firstTabPause    = 3 * time.Millisecond
)

// awaitTab returns once Chrome has opened its first tab. Chrome answers over
// CDP before that: who asked in between would find no page, or be given a
// second one beside it.
func (b *Browser) awaitTab(ctx context.Context) error {
	const op = "browser.start"
	ctx, cancel := context.WithTimeout(ctx, firstTabDeadline)
	defer cancel()
	pause := time.NewTicker(firstTabPause)
	defer pause.Stop()
	for {
		open, err := capture.Pages(ctx, b.driver)
		if err != nil {
			return fault.Wrap(err, fault.BrowserFailed, op, "Chrome's first tab was not found")
		}
		if len(open) > 0 {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.BrowserFailed, op, "Chrome opened no tab")
		}
	}
}
