package baseline

import (
	"testing"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/state"
)

// The document replaces a store that is damaged, or that lacks what was read from this
// very disk. It never replaces a store only because the store was not read, or because
// the document's reading is older than the disk.
func TestBrokenStores(t *testing.T) {
	cookies := []state.Cookie{{Name: "n", Domain: "a.example", Path: "/"}}
	local := []state.Area{{StorageKey: "https://a.example/", Items: []state.Item{{Key: "k", Value: "v"}}}}
	both := []string{state.ComponentCookies, state.ComponentLocalStorage}
	holding := func(damage, uncounted string) (inv state.Inventory) {
		for _, component := range both {
			inv = append(inv, state.Holding{Component: component, Damage: damage, Uncounted: uncounted})
		}
		return inv
	}
	for name, test := range map[string]struct {
		fromDisk []string
		found    inspect.Profile
		gone     bool
	}{
		"whole":                        {both, inspect.Profile{Cookies: cookies, LocalStorage: localstorage.Contents{Areas: local}}, false},
		"not counted":                  {both, inspect.Profile{Inventory: holding("", "too many")}, false},
		"damaged":                      {both, inspect.Profile{Inventory: holding("broken", "")}, true},
		"damaged, of an older reading": {nil, inspect.Profile{Inventory: holding("broken", "")}, true},
		"not there":                    {both, inspect.Profile{}, true},
		"not there, and never read":    {nil, inspect.Profile{}, false},
		"short":                        {both, inspect.Profile{Cookies: []state.Cookie{}, LocalStorage: localstorage.Contents{Areas: []state.Area{}}}, true},
		"short, of an older reading":   {nil, inspect.Profile{Cookies: []state.Cookie{}, LocalStorage: localstorage.Contents{Areas: []state.Area{}}}, false},
	} {
		doc := state.Document{Complete: true, Datadir: state.DatadirClean, Inventory: state.Inventory{}, Cookies: cookies, Local: local, FromDisk: test.fromDisk}
		s := Baseline{Found: test.found}
		s.Verdict = profile.Reconcile(profile.Copies{Document: doc, Found: test.found})
		if s.Broken.Cookies != test.gone || s.Broken.LocalStorage != test.gone {
			t.Errorf("%s: broken: cookies %t, localStorage %t, want %t", name, s.Broken.Cookies, s.Broken.LocalStorage, test.gone)
		}
		by := state.BySite
		if len(test.fromDisk) > 0 || s.Broken.LocalStorage {
			by = state.ByRestore
		}
		if got := s.DifferenceCause(doc, state.ComponentLocalStorage, s.Broken.LocalStorage); got != by {
			t.Errorf("%s: the difference is attributed to %q, want %q", name, got, by)
		}
	}
}
