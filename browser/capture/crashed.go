package capture

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/hiddentab"
)

// crashedDeadline bounds the question whether one tab has crashed. Chrome
// itself answers it, not the page.
const crashedDeadline = 2 * time.Second

// Crashed lists the tabs whose renderer has died: Chrome shows their address
// still and nothing of their page, and what is asked of the page has no answer.
func Crashed(ctx context.Context, conn Conn) (map[target.ID]bool, error) {
	pages, err := Pages(ctx, conn)
	if err != nil {
		return nil, err
	}
	dead := map[target.ID]bool{}
	for _, p := range pages {
		if crashed(ctx, conn, p.TargetID) {
			dead[p.TargetID] = true
		}
	}
	return dead, ctx.Err()
}

// crashed asks for the inspector's events, which a page cannot notice: Chrome
// tells of the crash again before it answers.
func crashed(ctx context.Context, conn Conn, id target.ID) bool {
	ctx, cancel := context.WithTimeout(ctx, crashedDeadline)
	defer cancel()
	s, detach, err := hiddentab.Attach(ctx, conn, id)
	if err != nil {
		return false // it has been closed
	}
	told, stop := s.Subscribe(inspector.TargetCrashed.Method)
	defer stop()
	// Where it fails, nothing is told either.
	_, _ = cdp.Call(ctx, s, inspector.Enable, cdp.Empty{})
	detach() // which ends the events, after those that came
	select {
	case _, crashed := <-told:
		return crashed
	case <-ctx.Done():
		return false
	}
}
