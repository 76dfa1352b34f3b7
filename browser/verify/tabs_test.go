package verify

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stasisd/stasis/state"
)

// A saved tab is compared with the tab that it has become. Where that is not certain, equal
// tabs of the same address belong together.
func TestPairTabs(t *testing.T) {
	const url, key = "https://a.example/", "https://a.example/"
	tab := func(id, value string) state.Tab {
		return state.Tab{TargetID: id, URL: url, Name: value, Session: []state.Area{{StorageKey: key, Items: []state.Item{{Key: "v", Value: value}}}}}
	}
	elsewhere := state.Tab{TargetID: "x", URL: "https://b.example/"}
	saved := []state.Tab{tab("1", "one"), tab("2", "two"), tab("3", "three")}
	for name, test := range map[string]struct {
		open []state.Tab
		ids  []string
		want []string // value of the saved tab, ID of the open one
	}{
		"another order":       {[]state.Tab{tab("c", "three"), tab("b", "two"), tab("a", "one")}, nil, []string{"one a", "two b", "three c"}},
		"one has changed":     {[]state.Tab{tab("c", "three"), tab("b", "new"), tab("a", "one")}, nil, []string{"one a", "two b", "three c"}},
		"certain":             {[]state.Tab{tab("c", "one"), tab("b", "two"), tab("a", "three")}, []string{"a", "b", "c"}, []string{"one a", "two b", "three c"}},
		"one is certain":      {[]state.Tab{tab("c", "three"), tab("b", "one"), tab("a", "new")}, []string{"", "a", ""}, []string{"one b", "two a", "three c"}},
		"one has navigated":   {[]state.Tab{tab("c", "three"), elsewhere, tab("a", "one")}, nil, []string{"one a", "three c"}},
		"the certain one has": {[]state.Tab{tab("c", "three"), elsewhere, tab("a", "one")}, []string{"", "x", ""}, []string{"one a", "three c"}},
		"one has closed":      {[]state.Tab{tab("c", "three"), tab("a", "one")}, []string{"", "b", ""}, []string{"one a", "three c"}},
	} {
		var got []string
		for _, p := range pairTabs(saved, test.open, func(i int) string { return slices.Concat(test.ids, make([]string, 3))[i] }) {
			got = append(got, fmt.Sprint(p.saved.Name, " ", p.open.TargetID))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// The window.name of a tab whose page did not answer is not known, so it is no difference.
func TestNameDifferences(t *testing.T) {
	tab := func(url, name string) state.Tab { return state.Tab{URL: url, Name: name} }
	const read, unread, other = "https://read.example/", "https://unread.example/", "https://other.example/"
	pairs := []tabPair{{tab(read, "a"), tab(read, "")}, {tab(unread, "b"), tab(unread, "")}, {tab(other, "c"), tab(other, "d")}}
	missed := []state.Missed{{Component: state.ComponentWindowName, Origin: unread}, {Component: state.ComponentHistory, Origin: read}}
	got := nameDifferences(pairs, missed, func(state.Tab) string { return state.BySite })
	if len(got) != 2 || got[0].Missing != 1 || got[1].Changed != 1 {
		t.Errorf("%+v", got)
	}
}
