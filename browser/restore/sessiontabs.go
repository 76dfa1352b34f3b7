package restore

import (
	"context"
	"slices"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// releaseSessionTabs releases the tabs that Chrome restored from the profile's session
// files. Before that, it applies sessionStorage by script: all of it (all), or only what
// the profile is known to lack. Chrome loads background tabs lazily, seconds later. So
// each tab is activated once and loads now, the active tab last.
func (h *Tabs) releaseSessionTabs(ctx context.Context, doc state.Document, all bool) []state.Component {
	h.env.Baseline.NoteByScript(all)
	saved := map[*heldTab]state.Tab{}
	var front *heldTab
	r := tabReport{saved: doc.Tabs, byScript: all, lost: report.NotOpened.With("Chrome did not restore the tab from its session files"),
		short: report.ListNotRestored.With("Chrome kept fewer entries in its session files")}
	if !all {
		r.unstored = slices.Clone(h.env.Baseline.Unstored)
	}
	matched := addNavigated(h.match(doc.Tabs), h.tabs, doc.Tabs)
	h.env.Baseline.NoteTabs(idsOf(unmistakable(matched, h.tabs)))
	for i, t := range matched {
		if t == nil || !h.env.Browser.AllowedURL(t.info.URL) {
			r.add(i, false, 0)
			continue
		}
		r.add(i, true, h.entries(ctx, t))
		tab := doc.Tabs[i].At(t.info.URL)
		if tab.URL != blankURL {
			h.env.PendingTabs.add(t.info.TargetID, tab)
		}
		if !all {
			tab.Session = slices.DeleteFunc(slices.Clone(tab.Session), func(a state.Area) bool { return !h.env.Baseline.Applies(a) })
		}
		saved[t] = tab
		if doc.Tabs[i].Active {
			front = t
		}
	}
	if front == nil && h.joined { // else the window's blank tab would stay in front
		if i := slices.IndexFunc(h.tabs, func(t *heldTab) bool { return h.env.Browser.AllowedURL(t.info.URL) }); i >= 0 {
			front = h.tabs[i]
		}
	}
	for _, t := range h.tabs {
		if !h.env.Browser.AllowedURL(t.info.URL) {
			h.post("", target.CloseTarget.Method, target.CloseTargetParams{TargetID: t.info.TargetID})
			continue
		}
		if front != nil && (t != front || h.joined) {
			// Activation comes before the script. A lazy tab starts its navigation, which
			// is then held, only when it is in front; afterwards the script would be too
			// late. If the tabs did not join a window, the front tab is in front already.
			h.activate(ctx, t)
		}
		h.addScript(t, saved[t])
		if t.blank() && front != nil {
			// A client may navigate the tab at once, so it gets its setup first. A blank
			// tab that does not answer in time is kept all the same.
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

// unmistakable returns those of the matched tabs, by the index of their saved tab, whose
// address no other held tab has. The match of others is by their order only.
func unmistakable(matched, held []*heldTab) []*heldTab {
	sure := slices.Clone(matched)
	for i, t := range matched {
		if t != nil && slices.ContainsFunc(held, func(other *heldTab) bool { return other != t && other.info.URL == t.info.URL }) {
			sure[i] = nil
		}
	}
	return sure
}
