package browser

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
)

// attached attaches to a target, calls f with the session, and detaches. The error is
// Chrome's where it does not attach, else that of f.
func (b *Browser) attached(ctx context.Context, id target.ID, f func(id target.SessionID) error) error {
	yes := true
	at, err := cdp.Call(ctx, b.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &yes})
	if err != nil {
		return err
	}
	defer func() {
		_ = b.driver.Post(b.ctx, "", target.DetachFromTarget.Method, target.DetachFromTargetParams(at)) // of a lost pipe nothing is left
	}()
	return f(at.SessionID)
}
