package capture

import (
	"context"
	"slices"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
)

// After rereadDeadline a reading of an environment reads no tab again that it has read. After
// unreadDeadline it reads no tab again at all. rereadPause is the time between two of them.
const (
	rereadDeadline = 6 * time.Second
	unreadDeadline = 10 * time.Second
	rereadPause    = 25 * time.Millisecond
)

// patience ends when tabs are no longer read again: reread for those that were read, unread for
// those whose history Chrome has refused. Chrome gives one also to a tab that never shows a page.
type patience struct{ reread, unread context.Context }

// newPatience returns the patience of one reading of an environment.
func newPatience(ctx context.Context) (p patience, cancel func()) {
	var endUnread, endReread context.CancelFunc
	p.unread, endUnread = context.WithTimeout(ctx, unreadDeadline)
	p.reread, endReread = context.WithTimeout(ctx, rereadDeadline)
	return p, func() { endUnread(); endReread() }
}

// rereads bounds two numbers: how often a tab that navigates is read again if it has a history, and
// how often all tabs are read again if their processes have different localStorage for one origin.
const rereads = 5

// readUntilStable is readTabs, but it reads a tab again that has navigated meanwhile. While
// Chromium 156 moves a tab to another process it gives the tab no address, answers
// Page.getNavigationHistory by "Not attached to an active page", and has no storage of its
// frames. A reading would lack them, or mix two pages.
func readUntilStable(ctx context.Context, p patience, conn Conn, targets []*target.Info) []reading {
	readings := readTabs(ctx, conn, targets)
	pause := time.NewTicker(rereadPause)
	defer pause.Stop()
	for {
		unstable := p.unstableTabs(readings)
		if len(unstable) == 0 {
			break
		}
		select {
		case <-p.unread.Done():
		case <-pause.C:
			if reread(ctx, conn, unstable) {
				continue
			}
		}
		break
	}
	keepOneActive(conn, readings)
	return readings
}

// unstableTabs returns the tabs to read again, by their ID. Chrome may refuse to read something
// of a tab for another reason than a navigation. So a tab that has a history is read again only
// rereads times.
func (p patience) unstableTabs(readings []reading) map[string]*reading {
	tabs := map[string]*reading{}
	for i, r := range readings {
		if r.navigated && (r.tab.History == nil || r.rereadings < rereads && p.reread.Err() == nil) {
			tabs[r.tab.TargetID] = &readings[i]
		}
	}
	return tabs
}

// reread reads tabs again. It keeps what was read of a tab that has closed, and of one whose
// history Chrome now refuses. It reports false if Chrome itself does not answer, or not in time.
func reread(ctx context.Context, conn Conn, tabs map[string]*reading) bool {
	targets, _, err := split(ctx, conn)
	if err != nil {
		return false
	}
	targets = slices.DeleteFunc(targets, func(t *target.Info) bool {
		return t.Type == "page" && tabs[string(t.TargetID)] == nil
	})
	for id, r := range tabs {
		r.navigated = slices.ContainsFunc(targets, func(t *target.Info) bool { return string(t.TargetID) == id })
	}
	readings := readTabs(ctx, conn, targets)
	if ctx.Err() != nil {
		return false // the earlier readings are more complete
	}
	for _, again := range readings {
		r := tabs[again.tab.TargetID]
		if r.tab.History != nil && again.tab.History == nil {
			continue
		}
		again.rereadings = r.rereadings + 1
		*r = again
	}
	return true
}

// entryID identifies the current entry of a back/forward list. It changes with each navigation
// to another page. A changed title does not change it.
func entryID(list page.GetNavigationHistoryResult) int64 {
	if list.CurrentIndex < 0 || int(list.CurrentIndex) >= len(list.Entries) {
		return 0
	}
	return list.Entries[list.CurrentIndex].ID
}

// keepOneActive leaves one of the visible tabs active: the one that came to the front
// last. While clients are connected all tabs are visible.
func keepOneActive(conn Conn, readings []reading) {
	var visible []*target.Info
	for _, r := range readings {
		if r.tab.Active && !r.temporary {
			visible = append(visible, &target.Info{TargetID: target.ID(r.tab.TargetID)})
		}
	}
	front := lastShown(conn, visible)
	for i := range readings {
		readings[i].tab.Active = front != nil && readings[i].tab.TargetID == string(front.TargetID)
	}
}
