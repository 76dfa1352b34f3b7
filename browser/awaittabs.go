package browser

import (
	"context"
	"slices"
	"time"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/state"
)

const (
	// tabsDeadline bounds the wait of AwaitTabs. Chrome writes its session files up to 2.5 s
	// late (Chromium's components/sessions/core/command_storage_manager.cc), and later on a
	// busy machine. tabsPoll is the time between two checks.
	tabsDeadline = 6 * time.Second
	tabsPoll     = 50 * time.Millisecond
	// listed is how many entries before and after the current one Chrome keeps of a
	// back/forward list (gMaxPersistNavigationCount).
	listed = 6
)

// AwaitTabs waits until Chrome's session files have the addresses of a document's tabs, so
// that a copy of the files restores them with their back/forward lists. It reports whether
// it had to wait. If Chrome does not write them in time, the restore reports what is missing.
// The shell has no session files.
func (b *Browser) AwaitTabs(ctx context.Context, doc state.Document) (waited bool) {
	if b.shell() || doc.TabsByURL {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, tabsDeadline)
	defer cancel()
	poll := time.NewTicker(tabsPoll)
	defer poll.Stop()
	for !tabsWritten(ctx, b.dir.Profile(), doc.Tabs) {
		waited = true
		select {
		case <-poll.C:
		case <-b.Done():
			return true
		case <-ctx.Done():
			return true
		}
	}
	return waited
}

// tabsWritten reports whether the session file of a profile names all addresses of the tabs
// that Chrome keeps. It is true if the profile cannot be read, because a later reading may
// not differ.
func tabsWritten(ctx context.Context, userDataDir string, tabs []state.Tab) bool {
	file, err := inspect.ReadSessionFile(ctx, profile.Path(userDataDir))
	if err != nil {
		return true
	}
	return !slices.ContainsFunc(tabs, func(tab state.Tab) bool {
		kept := tab.History[max(0, min(tab.Current-listed+1, len(tab.History))):min(len(tab.History), tab.Current+listed)]
		return slices.ContainsFunc(kept, func(e state.HistoryEntry) bool { return e.URL != "about:blank" && !file.Names(e.URL) })
	})
}
