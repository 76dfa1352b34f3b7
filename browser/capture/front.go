package capture

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/hiddentab"
)

// WithFrontTab attaches to the tab in front and calls do with it. The pages themselves
// report which tab that is (document.visibilityState). If none does, WithFrontTab takes
// the first tab. If no tab is open, it opens a blank one.
func WithFrontTab(ctx context.Context, conn Conn, do func(cdp.Session, *target.Info) error) error {
	pages, err := Pages(ctx, conn)
	if err != nil {
		return err
	}
	if len(pages) == 0 {
		made, err := cdp.Call(ctx, conn, target.CreateTarget, target.CreateTargetParams{URL: "about:blank"})
		if err != nil {
			return err
		}
		pages = []*target.Info{{TargetID: made.TargetID, URL: "about:blank"}}
	}
	front := pages[0]
	if len(pages) > 1 {
		for _, r := range queryVisibility(ctx, conn, pages) {
			if r.visible {
				front = r.info
				break
			}
		}
	}
	return WithTab(ctx, conn, front, do)
}

// WithTab attaches to a tab, calls do and detaches.
func WithTab(ctx context.Context, conn Conn, tab *target.Info, do func(cdp.Session, *target.Info) error) error {
	s, detach, err := hiddentab.Attach(ctx, conn, tab.TargetID)
	if err != nil {
		return err
	}
	defer detach()
	return do(s, tab)
}

type frontAnswer struct {
	info    *target.Info
	visible bool
}

// queryVisibility asks all pages at the same time whether they are visible. A page that
// does not answer counts as not visible.
func queryVisibility(ctx context.Context, conn Conn, pages []*target.Info) []frontAnswer {
	ctx, cancel := context.WithTimeout(ctx, TabDeadline)
	defer cancel()
	answers := make(chan frontAnswer, len(pages))
	for _, p := range pages {
		go func() {
			answer := frontAnswer{info: p}
			if s, detach, err := hiddentab.Attach(ctx, conn, p.TargetID); err == nil {
				seen, err := readView(ctx, s, cdp.FrameID(p.TargetID))
				answer.visible = err == nil && seen.Visible
				detach()
			}
			answers <- answer
		}()
	}
	var all []frontAnswer
	for range pages {
		a := <-answers
		all = append(all, a)
		if a.visible {
			cancel() // the other answers are not needed any more
		}
	}
	return all
}
