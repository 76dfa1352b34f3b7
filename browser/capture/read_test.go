package capture

import (
	"testing"

	"github.com/stasisd/stasis/state"
)

// Tabs of one origin in two processes have copies of its localStorage, one of which may be
// older.
func TestAgree(t *testing.T) {
	area := func(key string, items ...state.Item) reading {
		return reading{local: []state.Area{{StorageKey: key, Items: items}}}
	}
	a, b := state.Item{Key: "a", Value: "1"}, state.Item{Key: "b", Value: "2"}
	for name, c := range map[string]struct {
		readings []reading
		want     bool
	}{
		"no tabs":           {nil, true},
		"another order":     {[]reading{area("x", a, b), area("x", b, a)}, true},
		"other origins":     {[]reading{area("x", a), area("y", b)}, true},
		"an item is absent": {[]reading{area("x", a, b), area("x", a)}, false},
		"another value":     {[]reading{area("x", a), area("x", state.Item{Key: "a", Value: "old"})}, false},
	} {
		if got := agree(c.readings); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
