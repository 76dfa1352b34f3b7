package verify

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
)

// Thawed reads the environment of a parked Chrome back once it runs again, and
// compares it with what was read before it was frozen. It is the very Chrome that was
// saved and nothing was written, so what differs its sites have changed: their timers
// run from the moment of the thaw. But time has passed for the cookies, and a tab whose
// renderer has died is there by its address alone.
//
// reader reads pages, driver reads storage through a hidden tab. ready is called
// between the look for dead renderers and the reading.
func Thawed(ctx context.Context, reader, driver Conn, doc state.Document, now func() time.Time, ready func()) (state.Verification, error) {
	var v state.Verification
	dead, err := capture.Crashed(ctx, reader)
	if err != nil {
		return v, err
	}
	ready()
	is, err := capture.Read(ctx, reader)
	if err != nil {
		return v, err
	}
	asker, err := capture.Ask(ctx, driver)
	if err != nil {
		return v, err
	}
	defer asker.Close(ctx)
	v.Components = state.ExpiredSince(doc.Cookies, is.Cookies, now())
	v.Differences = append(v.Differences, state.DifferingCookies(doc.Cookies, is.Cookies, now(), state.BySite)...)
	v.Differences = append(v.Differences, localDifferences(ctx, asker, doc.Local, is.Local, bySite, bySite)...)
	v.Differences = append(v.Differences, sameTabs(doc.Tabs, is.Tabs)...)
	lines, differences := state.ComparedTabs(doc.Tabs, is.Tabs, func(t state.Tab) bool { return dead[target.ID(t.TargetID)] })
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
