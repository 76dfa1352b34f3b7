package capture

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/hiddentab"
)

// crashedDeadline bounds the check of one tab. Chrome answers it, not the page.
const crashedDeadline = 2 * time.Second

// Crashed lists the tabs whose renderer has died. Chrome still shows the address of such
// a tab but nothing of its page, and commands to the page get no answer.
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

// crashed reports whether a target's renderer has died. It enables the Inspector domain,
// which a page cannot notice: Chrome then repeats the event of the crash before it
// answers.
func crashed(ctx context.Context, conn Conn, id target.ID) bool {
	ctx, cancel := context.WithTimeout(ctx, crashedDeadline)
	defer cancel()
	s, detach, err := hiddentab.Attach(ctx, conn, id)
	if err != nil {
		return false // it has been closed
	}
	events, stop := s.Subscribe(inspector.TargetCrashed.Method)
	defer stop()
	// If this fails, no event comes either.
	_, _ = cdp.Call(ctx, s, inspector.Enable, cdp.Empty{})
	detach() // ends the events, after those that were sent
	select {
	case _, crashed := <-events:
		return crashed
	case <-ctx.Done():
		return false
	}
}
