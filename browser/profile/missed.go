package profile

import (
	"context"
	"slices"
	"strings"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/state"
)

// tabComponents lists the kinds of a tab's state that Chrome itself writes into the
// profile when it closes.
var tabComponents = []string{state.ComponentSessionStorage, state.ComponentHistory}

// findTabs looks for tab state that could not be read over CDP, such as that of tabs
// blocked by an alert. The profile is one that Chrome closed.
func findTabs(ctx context.Context, missing []state.Missed, folder string) {
	if !slices.ContainsFunc(missing, func(m state.Missed) bool { return slices.Contains(tabComponents, m.Component) }) {
		return
	}
	tabs, err := inspect.ReadTabs(ctx, folder)
	if err != nil {
		return // nothing is known about them then
	}
	for i, m := range missing {
		switch {
		case m.Component == state.ComponentSessionStorage && tabs.Items != nil:
			n := itemsOf(tabs.Items, m.Origin)
			missing[i].InProfile = &n
		case m.Component == state.ComponentHistory:
			n := 0
			if tabs.Names(m.Origin) {
				n = 1
			}
			missing[i].InProfile = &n
		}
	}
}

// findLocal looks for the localStorage of pages that could not be read. If the database
// has too much to read, only the storage keys with items are known.
func findLocal(missing []state.Missed, found localstorage.Contents) {
	if found.Commits == nil {
		return
	}
	items := map[string]int{}
	for key, last := range found.Commits {
		if !last.Emptied {
			items[key] = 1
		}
	}
	for _, area := range found.Areas {
		items[area.StorageKey] = len(area.Items)
	}
	for i, m := range missing {
		if m.Component == state.ComponentLocalStorage && m.Origin != "" {
			n := itemsOf(items, m.Origin)
			missing[i].InProfile = &n
		}
	}
}

// itemsOf adds up the items of a storage key, or of a page's whole origin if only its URL
// is known.
func itemsOf(items map[string]int, of string) int {
	if n, there := items[of]; there || strings.Contains(of, "^") {
		return n
	}
	n := 0
	for key, count := range items {
		if parsed, ok := state.ParseStorageKey(key); ok && strings.HasPrefix(of, parsed.Origin+"/") {
			n += count
		}
	}
	return n
}
