package browser

import (
	"slices"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/state"
)

// shellFront knows which tab of the shell is in front, as far as that can be
// told: the shell shows all of its tabs at once. It is the newest one, as in full
// Chrome, and of those that were restored the one that had been in front. It is
// written before anybody else has the browser.
type shellFront struct {
	known  []target.ID
	active target.ID
}

// restored notes a tab that was opened by a restore.
func (f *shellFront) restored(id target.ID, active bool) {
	f.known = append(f.known, id)
	if active {
		f.active = id
	}
}

// index is which of some tabs, the newest last, is in front; -1 of none.
func (f *shellFront) index(ids []target.ID) int {
	last := len(ids) - 1
	if i := slices.Index(ids, f.active); i >= 0 && slices.Contains(f.known, ids[last]) {
		return i
	}
	return last
}

// of is the tab in front, nil of none.
func (f *shellFront) of(pages []*target.Info) *target.Info {
	var ids []target.ID
	for _, p := range pages {
		ids = append(ids, p.TargetID)
	}
	if i := f.index(ids); i >= 0 {
		return pages[i]
	}
	return nil
}

// mark says of the tabs of a document which one is in front.
func (f *shellFront) mark(tabs []state.Tab) {
	var ids []target.ID
	for _, t := range tabs {
		ids = append(ids, target.ID(t.TargetID))
	}
	front := f.index(ids)
	for i := range tabs {
		tabs[i].Active = i == front
	}
}
