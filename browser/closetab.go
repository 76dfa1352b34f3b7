package browser

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
)

// closeTabDeadline bounds how long a blank tab may take to go, which is a matter
// of milliseconds.
const closeTabDeadline = 5 * time.Second

// closeTab closes a tab that shows nothing and returns once it has gone; one that
// is gone already is closed.
// Chrome answers before that (CDP Target.closeTarget), and a client that
// connects in between would take the dying tab for its page.
func (b *Browser) closeTab(ctx context.Context, id target.ID) error {
	gone := b.mux.Gone(id)
	ctx, cancel := context.WithTimeout(ctx, closeTabDeadline)
	defer cancel()
	if _, err := cdp.Call(ctx, b.driver, target.CloseTarget, target.CloseTargetParams{TargetID: id}); err != nil {
		select {
		case <-gone: // whoever closed it did not stay to hear of it
			return nil
		default:
			return err
		}
	}
	select {
	case <-gone:
		return nil
	case <-b.mux.Done():
		return b.mux.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
