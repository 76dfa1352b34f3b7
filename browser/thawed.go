package browser

import (
	"context"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
)

// VerifyThawed reads the environment of a parked Chrome back once it runs again,
// and compares it with what was read before it was frozen. It is the very Chrome
// that was saved and nothing was written, so what differs its sites have changed:
// their timers run from the moment of the thaw. But time has passed for the
// cookies, and a tab whose renderer has died is there by its address alone.
func (b *Browser) VerifyThawed(ctx context.Context, doc state.Document) (state.Verification, error) {
	var v state.Verification
	dead, err := capture.Crashed(ctx, b.reader())
	if err != nil {
		return v, err
	}
	b.mux.Lull(ctx) // clients come first
	now, err := capture.Read(ctx, b.reader())
	if err != nil {
		return v, err
	}
	asker, err := capture.Ask(ctx, b.driver)
	if err != nil {
		return v, err
	}
	defer asker.Close(ctx)
	v.Components = state.ExpiredSince(doc.Cookies, now.Cookies, b.now())
	v.Differences = append(v.Differences, state.DifferingCookies(doc.Cookies, now.Cookies, b.now(), state.BySite)...)
	v.Differences = append(v.Differences, localDifferences(ctx, asker, doc.Local, now.Local, bySite, bySite)...)
	v.Differences = append(v.Differences, sameTabs(doc.Tabs, now.Tabs)...)
	lines, differences := state.ComparedTabs(doc.Tabs, now.Tabs, func(t state.Tab) bool { return dead[target.ID(t.TargetID)] })
	v.Components = append(v.Components, lines...)
	v.Differences = append(v.Differences, differences...)
	return v, ctx.Err()
}

func bySite(state.Area) string { return state.BySite }

// sameTabs compares the sessionStorage of tabs that are in one Chrome before and
// after, where their pages could be read.
func sameTabs(saved, open []state.Tab) []state.Difference {
	var all []state.Difference
	for _, tab := range saved {
		for _, other := range open {
			if other.TargetID != tab.TargetID {
				continue
			}
			for _, area := range tab.Session {
				for _, is := range other.Session {
					if d, some := area.Differ(is, state.ComponentSessionStorage, state.BySite); some && is.StorageKey == area.StorageKey {
						all = append(all, d)
					}
				}
			}
		}
	}
	return all
}
