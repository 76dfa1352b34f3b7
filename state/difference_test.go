package state_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

func area(items ...state.Item) state.Area {
	return state.Area{StorageKey: "https://a.example/", Items: items}
}

// Only the site can add keys. Missing and changed keys are reported for both, and values
// never.
func TestDiffer(t *testing.T) {
	was := area(state.Item{Key: "kept", Value: "v"}, state.Item{Key: "gone", Value: "v"}, state.Item{Key: "rotated", Value: "old"}, state.Item{Key: "", Value: ""})
	is := area(state.Item{Key: "kept", Value: "v"}, state.Item{Key: "rotated", Value: "new"}, state.Item{Key: "new", Value: "v"}, state.Item{Key: "", Value: ""})
	for by, want := range map[string]state.Difference{
		state.BySite: {Component: "local_storage", Origin: "https://a.example/", By: "site", Missing: 1, Changed: 1, Added: 1,
			Names: []string{"gone", "new", "rotated"}},
		state.ByRestore: {Component: "local_storage", Origin: "https://a.example/", By: "restore", Missing: 1, Changed: 1,
			Names: []string{"gone", "rotated"}},
	} {
		got, some := was.Differ(is, state.ComponentLocalStorage, by)
		if diff := cmp.Diff(want, got); diff != "" || !some {
			t.Errorf("by %s: %t (-want +got):\n%s", by, some, diff)
		}
		if ok := (state.Verification{Differences: []state.Difference{got}}).OK(); ok != (by == state.BySite) {
			t.Errorf("by %s: OK is %t", by, ok)
		}
	}
	if d, some := was.Differ(was, state.ComponentLocalStorage, state.BySite); some {
		t.Errorf("equal areas differ: %+v", d)
	}
}

func TestDifferNamesFirst(t *testing.T) {
	var was state.Area
	for i := range 2 * state.MaxNames {
		was.Items = append(was.Items, state.Item{Key: fmt.Sprintf("%03d", i)})
	}
	got, _ := was.Differ(state.Area{}, state.ComponentLocalStorage, state.ByRestore)
	if got.Missing != 2*state.MaxNames || len(got.Names) != state.MaxNames || got.Names[0] != "000" {
		t.Errorf("%+v", got)
	}
}

// An expired cookie is not missing. Domains are compared separately.
func TestDifferingCookies(t *testing.T) {
	expired := cookie(func(c *state.Cookie) { c.Name, c.Session, c.Expires = "expired", false, 1 })
	missing := cookie(func(c *state.Cookie) { c.Name, c.Domain = "gone", "b.example" })
	rotated := cookie(nil)
	rotated.Value = "new"
	added := cookie(func(c *state.Cookie) { c.Name = "added" })
	got := state.DifferingCookies([]state.Cookie{cookie(nil), expired, missing}, []state.Cookie{rotated, added}, now, state.BySite)
	want := []state.Difference{
		{Component: "cookies", Origin: "a.example", By: "site", Changed: 1, Added: 1, Names: []string{"added", "n"}},
		{Component: "cookies", Origin: "b.example", By: "site", Missing: 1, Names: []string{"gone"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Uncounted holdings are neither lost nor restored. Damaged ones have a reason that says
// so.
func TestLoadedLines(t *testing.T) {
	doc := state.Document{Complete: true, Inventory: state.Inventory{
		{Component: "bookmarks", Items: 3},
		{Component: "content_settings", Origin: "https://a.example", Items: 2},
		{Component: "cookies", Origin: "a.example", Items: 4},
		{Component: "history", Items: 9},
		{Component: "indexed_db", Origin: "https://a.example/", Items: 2},
		{Component: "indexed_db", Origin: "https://b.example/", Uncounted: "odd"},
		{Component: "local_storage", Origin: "https://a.example/", Items: 1},
		{Component: "preferences", Items: 1},
	}}
	got := state.LoadedLines(doc, state.Inventory{
		{Component: "bookmarks", Items: 5},
		{Component: "history", Damage: "broken"},
		{Component: "indexed_db", Origin: "https://a.example/", Items: 1, Damage: "a table is damaged"},
		{Component: "indexed_db", Origin: "https://b.example/", Items: 7},
		{Component: "preferences", Damage: "the file is not JSON"},
		{Component: "service_workers", Origin: "https://a.example/", Damage: "a log is damaged"},
	})
	want := []state.Component{
		{Name: "bookmarks", Saved: 3, Restored: 3},
		{Name: "content_settings", Origin: "https://a.example", Saved: 2, Dropped: 2, Reason: report.SettingsReset.Reason()},
		{Name: "history", Saved: 9, Dropped: 9, Reason: report.Damaged.Reason()},
		{Name: "indexed_db", Origin: "https://a.example/", Saved: 2, Restored: 1, Dropped: 1, Reason: report.Damaged.Reason()},
		{Name: "indexed_db", Origin: "https://b.example/", Reason: report.NotCounted.Reason()},
		{Name: "local_storage", Origin: "https://a.example/", Saved: 1, Dropped: 1, Reason: report.NotUnpacked.Reason()},
		{Name: "preferences", Saved: 1, Dropped: 1, Reason: report.SettingsReset.Reason()},
		{Name: "service_workers", Origin: "https://a.example/", Reason: report.Damaged.Reason()},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(report.Reason{}, "Text")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, detail := range map[int]string{2: "broken", 3: "a table is damaged", 4: "odd", 7: "a log is damaged"} {
		if !strings.Contains(got[i].Reason.Text, detail) {
			t.Errorf("%q does not say %q", got[i].Reason.Text, detail)
		}
	}
}

// An uncounted component has no line that reports a loss. It has a line that says so,
// even if the document has some of its origins.
func TestLoadedLinesUncounted(t *testing.T) {
	const why = "it has too many"
	local := state.Area{StorageKey: "https://a.example/", Items: []state.Item{{Key: "k", Value: "v"}}}
	uncounted := state.Holding{Component: "local_storage", Uncounted: why}
	uncountedLine := state.Component{Name: "local_storage", Reason: report.NotCounted.Reason()}
	counted := state.Holding{Component: "local_storage", Origin: "https://b.example/", Items: 3}
	for name, test := range map[string]struct {
		saved, found state.Inventory
		want         []state.Component
	}{
		"both":  {state.Inventory{uncounted}, state.Inventory{uncounted}, []state.Component{uncountedLine}},
		"found": {state.Inventory{counted}, state.Inventory{uncounted}, []state.Component{{Name: "local_storage", Origin: "https://b.example/", Reason: report.NotCounted.Reason()}, uncountedLine}},
	} {
		doc := state.Document{Complete: true, Local: []state.Area{local}, Inventory: test.saved}
		if diff := cmp.Diff(test.want, state.LoadedLines(doc, test.found), cmpopts.IgnoreFields(report.Reason{}, "Text")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	doc := state.Document{Complete: true, Local: []state.Area{local}, Inventory: state.Inventory{uncounted}}
	if got := state.CaptureLines(doc); !slices.ContainsFunc(got, func(c state.Component) bool {
		return c.Name == uncountedLine.Name && c.Reason.Code == report.NotCounted
	}) {
		t.Errorf("a save reports %+v", got)
	}
	if got := state.LoadedLocalStorageLines(doc, nil); len(got) != 1 || got[0].Dropped != 0 || got[0].Reason.Code != report.NotCounted {
		t.Errorf("not read: %+v", got)
	}
	if got := state.LoadedLocalStorageLines(doc, []state.Area{}); len(got) != 1 || got[0].Dropped != 1 {
		t.Errorf("read and empty: %+v", got)
	}
}
