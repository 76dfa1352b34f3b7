package capture

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/hiddentab"
)

// WithFrontTab attaches to the tab in front and calls do with it. The pages themselves
// report which tab that is (document.visibilityState). While clients are connected all
// tabs are visible, and the one that came to the front last counts. If no page reports
// that it is visible, WithFrontTab takes the first tab. If no tab is open, it opens a
// blank one. A tab that a client keeps paused at its start answers nothing, so it is taken
// only if there is no other.
func WithFrontTab(ctx context.Context, conn Conn, do func(cdp.Session, *target.Info) error) error {
	pages, err := Pages(ctx, conn)
	if err != nil {
		return err
	}
	if len(pages) == 0 {
		made, err := cdp.Call(ctx, conn, target.CreateTarget, target.CreateTargetParams{URL: blankURL})
		if err != nil {
			return err
		}
		pages = []*target.Info{{TargetID: made.TargetID, URL: blankURL}}
	}
	pages = running(conn, pages)
	front := pages[0]
	if len(pages) > 1 {
		if at := lastShown(conn, queryVisibility(ctx, conn, pages)); at != nil {
			front = at
		}
	}
	s, detach, err := hiddentab.Attach(ctx, conn, front.TargetID)
	if err != nil {
		return err
	}
	defer detach()
	return do(s, front)
}

// running returns the pages that no client keeps paused, or all if there are none.
func running(conn Conn, pages []*target.Info) []*target.Info {
	var rest []*target.Info
	for _, p := range pages {
		if !conn.Paused(p.TargetID) {
			rest = append(rest, p)
		}
	}
	if rest == nil {
		return pages
	}
	return rest
}

// queryVisibility asks all pages at the same time whether they are visible, and returns
// those that are. A page that does not answer counts as not visible. Once the page that
// came to the front last is known to be visible, the others are not waited for.
func queryVisibility(ctx context.Context, conn Conn, pages []*target.Info) (visible []*target.Info) {
	ctx, cancel := context.WithTimeout(ctx, TabDeadline)
	defer cancel()
	first := lastShown(conn, pages)
	answers := make(chan *target.Info, len(pages))
	for _, p := range pages {
		go func() {
			var answer *target.Info
			if s, detach, err := hiddentab.Attach(ctx, conn, p.TargetID); err == nil {
				if seen, err := readView(ctx, s, cdp.FrameID(p.TargetID)); err == nil && seen.Visible {
					answer = p
				}
				detach()
			}
			answers <- answer
		}()
	}
	for range pages {
		if p := <-answers; p != nil {
			visible = append(visible, p)
			if p == first {
				cancel() // the other answers are not needed any more
			}
		}
	}
	return visible
}

// lastShown returns the page that came to the front last; nil if there are none.
func lastShown(conn Conn, pages []*target.Info) (last *target.Info) {
	for _, p := range pages {
		if last == nil || conn.LastShown(p.TargetID) > conn.LastShown(last.TargetID) {
			last = p
		}
	}
	return last
}
