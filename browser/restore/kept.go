package restore

import (
	"context"
	"slices"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// restoreKept releases the tabs that Chrome brought back from the profile's session
// files, with sessionStorage applied to them where the profile's is stale, all of
// it or what is known not to be there.
// Chrome loads tabs in the back lazily, seconds later; each is brought
// to the front once, so that it loads now, and the active one last.
func (h *Tabs) restoreKept(ctx context.Context, doc state.Document, all bool) []state.Component {
	h.env.Baseline.NoteByScript(all)
	saved := map[*heldTab]state.Tab{}
	var front *heldTab
	r := tabReport{saved: doc.Tabs, byScript: all, lost: report.NotOpened.With("Chrome did not bring the tab back from its session files"),
		short: report.ListNotRestored.With("Chrome kept fewer entries in its session files")}
	if !all {
		r.unstored = slices.Clone(h.env.Baseline.Unstored)
	}
	for i, t := range h.match(doc.Tabs) {
		if t == nil || !h.env.Browser.AllowedURL(t.info.URL) {
			r.add(i, false, 0)
			continue
		}
		r.add(i, true, h.entries(ctx, t))
		tab := doc.Tabs[i]
		if tab.URL != blankURL {
			h.env.Unloaded.add(t.info.TargetID, tab)
		}
		if !all {
			tab.Session = slices.DeleteFunc(slices.Clone(tab.Session), func(a state.Area) bool { return !h.env.Baseline.Applies(a) })
		}
		saved[t] = tab
		if doc.Tabs[i].Active {
			front = t
		}
	}
	for _, t := range h.tabs {
		if !h.env.Browser.AllowedURL(t.info.URL) {
			h.post("", target.CloseTarget.Method, target.CloseTargetParams{TargetID: t.info.TargetID})
			continue
		}
		if front != nil && t != front {
			// Before the script: until it is in front a lazy tab has no
			// navigation that is held, and the script would come too late.
			h.activate(ctx, t)
		}
		h.addScript(t, saved[t])
		if t.blank() && front != nil {
			// A client may send it elsewhere at once. A blank tab that does not answer
			// in time is there all the same.
			_ = h.runBlank(ctx, t)
			continue
		}
		h.run(t)
	}
	if front != nil && len(h.tabs) > 1 {
		h.activate(ctx, front)
	}
	return r.lines()
}
