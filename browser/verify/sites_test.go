package verify

import (
	"testing"

	"github.com/stasisd/stasis/state"
)

// A page can have changed storage of its own site, and of frames below its site. The pages
// that a tab showed before it was saved cannot.
func TestSitesShown(t *testing.T) {
	at := func(urls ...string) state.Tab {
		tab := state.Tab{URL: urls[len(urls)-1]}
		for _, url := range urls {
			tab.History = append(tab.History, state.HistoryEntry{URL: url})
		}
		return tab
	}
	shown := sitesShown([]state.Tab{at("https://before.example/", "https://www.app.example/")},
		[]state.Tab{at("https://before.example/", "https://www.app.example/", "https://login.example/", "https://now.example/"), at("about:blank")})
	for key, want := range map[string]bool{
		"https://www.app.example/": true, "https://id.app.example:8443/": true, "https://login.example/": true, "https://now.example/": true,
		"https://before.example/": false, "http://app.example/": false, "https://other.example/": false,
		"https://other.example/^0https://app.example": true, "https://other.example/^0https://before.example": false,
	} {
		if got := shown.mayChange(state.Area{StorageKey: key}); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
}
