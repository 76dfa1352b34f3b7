package browser

import (
	"slices"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/state"
)

// shellFront tracks which tab of the shell is in front. The shell itself shows all of its
// tabs at once. The newest tab counts as in front, as in full Chrome. Of restored tabs,
// the one that was in front when saved counts. It is written only before the browser is
// in use.
type shellFront struct {
	known  []target.ID
	active target.ID
}

// restored records a tab that a restore opened.
func (f *shellFront) restored(id target.ID, active bool) {
	f.known = append(f.known, id)
	if active {
		f.active = id
	}
}

// index returns which of the tabs, ordered by age with the newest last, is in front; -1
// if there are none.
func (f *shellFront) index(ids []target.ID) int {
	last := len(ids) - 1
	if i := slices.Index(ids, f.active); i >= 0 && slices.Contains(f.known, ids[last]) {
		return i
	}
	return last
}

// of returns the tab in front, or nil.
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

// mark sets Active on the tabs of a document.
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
