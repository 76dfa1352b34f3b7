package browser

import (
	"context"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
)

// How long a blank tab may take to go (it is a matter of milliseconds), and
// how often it is looked for meanwhile.
const (
	closeTabDeadline = 5 * time.Second
	closeTabPause    = 3 * time.Millisecond
)

// closeTab closes a tab that shows nothing and returns once it has gone.
// Chrome answers before that (CDP Target.closeTarget), and a client that
// connects in between would take the dying tab for its page.
func (b *Browser) closeTab(ctx context.Context, id target.ID) error {
	if _, err := cdp.Call(ctx, b.driver, target.CloseTarget, target.CloseTargetParams{TargetID: id}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, closeTabDeadline)
	defer cancel()
	pause := time.NewTicker(closeTabPause)
	defer pause.Stop()
	for {
		open, err := capture.Pages(ctx, b.driver)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(open, func(t *target.Info) bool { return t.TargetID == id }) {
			return nil
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
