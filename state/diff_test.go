package state_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state"
)

func TestDiff(t *testing.T) {
	area := func(key string, items ...string) state.Area {
		a := state.Area{StorageKey: key}
		for i := 0; i < len(items); i += 2 {
			a.Items = append(a.Items, state.Item{Key: items[i], Value: items[i+1]})
		}
		return a
	}
	before := state.Document{Complete: true,
		Cookies: []state.Cookie{{Name: "kept", Value: "k", Domain: ".a.example", Path: "/"}, {Name: "token", Value: "old-secret", Domain: "a.example", Path: "/"},
			{Name: "gone", Value: "g", Domain: "a.example", Path: "/p"}},
		Local:     []state.Area{area("https://a.example/", "k", "old-secret", "same", "s")},
		Tabs:      []state.Tab{{URL: "https://u:secret@a.example/x?t=secret#secret", Session: []state.Area{area("https://a.example/", "s", "1")}}, {URL: "data:text/html,secret"}},
		Inventory: state.Inventory{{Component: "indexed_db", Origin: "https://a.example/", Items: 1}, {Component: "cookies", Origin: "a.example", Items: 9}, {Component: "hsts", Items: 2}},
	}
	after := state.Document{Complete: true,
		Cookies: []state.Cookie{{Name: "kept", Value: "k", Domain: ".a.example", Path: "/"}, {Name: "token", Value: "new-secret", Domain: "a.example", Path: "/"},
			{Name: "kept", Value: "k", Domain: "a.example", Path: "/", Partition: &state.PartitionKey{TopLevelSite: "https://b.example"}}},
		Local:     []state.Area{area("https://a.example/", "k", "new-secret", "same", "s", "n", "secret")},
		Tabs:      []state.Tab{{URL: "https://a.example/x?t=other", Name: "secret", Session: []state.Area{area("https://a.example/", "s", "1")}}},
		Inventory: state.Inventory{{Component: "indexed_db", Origin: "https://a.example/", Items: 3}, {Component: "hsts", Items: 2}},
	}
	none := []string{}
	want := []state.Change{
		{Name: "cookies", Origin: "a.example", Added: []string{"kept below https://b.example"}, Removed: []string{"gone at /p"}, Changed: []string{"token"}, Before: 3, After: 3},
		{Name: "indexed_db", Origin: "https://a.example/", Added: none, Removed: none, Changed: none, Before: 1, After: 3},
		{Name: "local_storage", Origin: "https://a.example/", Added: []string{"n"}, Removed: none, Changed: []string{"k"}, Before: 2, After: 3},
		{Name: "tabs", Added: none, Removed: []string{"data:"}, Changed: none, Before: 1},
		{Name: "tabs", Origin: "https://a.example", Added: none, Removed: none, Changed: []string{"https://a.example/x"}, Before: 1, After: 1},
		{Name: "window_name", Origin: "https://a.example", Added: []string{"https://a.example/x"}, Removed: none, Changed: none, After: 1},
	}
	got := state.Diff(before, after, false)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	raw, err := json.Marshal(got)
	if err != nil || strings.Contains(string(raw), "secret") {
		t.Errorf("%s, %v", raw, err)
	}
	valued := state.Diff(before, after, true)
	if got := valued[0].Values["token"]; got != (state.Values{Before: "old-secret", After: "new-secret"}) {
		t.Errorf("%+v", got)
	}
	if got := state.Diff(after, before, false); len(got) != len(want) || got[0].Added[0] != "gone at /p" {
		t.Errorf("back: %+v", got)
	}
}

// Nothing differs from itself, and what is added one way is removed the other.
func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"cookies":[{"name":"a"},{"name":"a"}]}`), []byte(`{"tabs":[{"url":"%zz"},{"url":"https://a.example/?q"}]}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var before, after state.Document
		if json.Unmarshal(a, &before) != nil || json.Unmarshal(b, &after) != nil {
			return
		}
		if same := state.Diff(before, before, true); len(same) != 0 {
			t.Errorf("%+v", same)
		}
		there, back := state.Diff(before, after, false), state.Diff(after, before, false)
		for i := range there {
			if i >= len(back) || len(there[i].Added) != len(back[i].Removed) || len(there[i].Changed) != len(back[i].Changed) {
				t.Errorf("%+v and %+v", there, back)
				break
			}
		}
	})
}
