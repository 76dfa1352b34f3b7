package verify

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
)

// CompareThawed reads the environment of a parked Chrome back once it runs again, and
// compares it with what was read before the freeze. It is the same Chrome that was saved,
// and nothing was written to it. So every difference was made by its sites, whose timers
// run from the thaw on. Two exceptions: cookies may have expired, and of a tab whose
// renderer has died only the address is left.
//
// reader reads pages; driver reads storage through a hidden tab. ready is called after
// the check for dead renderers and before the reading.
func CompareThawed(ctx context.Context, reader, driver Conn, doc state.Document, now func() time.Time, ready func()) (state.Verification, error) {
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
	hidden, err := capture.OpenHiddenReader(ctx, driver)
	if err != nil {
		return v, err
	}
	defer hidden.Close(ctx)
	v.Components = state.ExpiredSince(doc.Cookies, is.Cookies, now())
	v.Differences = append(v.Differences, state.DifferingCookies(doc.Cookies, is.Cookies, now(), state.BySite)...)
	v.Differences = append(v.Differences, localDifferences(ctx, hidden, doc.Local, is.Local, bySite, bySite)...)
	v.Differences = append(v.Differences, sameTabs(doc.Tabs, is.Tabs)...)
	lines, differences := state.CompareTabs(doc.Tabs, is.Tabs, func(t state.Tab) bool { return dead[target.ID(t.TargetID)] })
	v.Components = append(v.Components, lines...)
	v.Differences = append(v.Differences, differences...)
	return v, ctx.Err()
}

func bySite(state.Area) string { return state.BySite }

// sameTabs compares the sessionStorage of the tabs of one Chrome before and after, as far
// as their pages could be read.
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
