package state_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

func TestCheckEntry(t *testing.T) {
	for _, good := range []string{"https://a.example", "https://a.example/", "http://a.example:8080", "http://127.0.0.1:3000", "http://[::1]:3000", "a.example", "localhost", "*.a.example", "10.0.0.1", "[::1]", "xn--bcher-kva.example"} {
		if err := state.CheckEntry(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "*", "*.", "https://", "https://a.example//", "https://a.example/path", "https://a.example?q", "https://u@a.example",
		"ftp://a.example", "file:///etc/passwd", "a.example:80", "a..example", ".a.example", "A.example", "https://A.example", "bücher.example", "a b", "*.*.example",
		"https://*.a.example", "https://a.example:0", "https://a.example:", "https://a.example:99999999", "about:blank", "[::1", "::1", "a.example/", "[fe80::1%eth0]", "\x00"} {
		if err := state.CheckEntry(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func FuzzCheckEntry(f *testing.F) {
	for _, s := range []string{"https://a.example", "*.a.example", "[::1]", "http://[::1]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		s := state.Selection{Include: []string{entry}}
		if state.CheckEntry(entry) == nil && len(entry) > 7 && entry[:7] == "http://" && !s.HasOrigin(entry) {
			t.Errorf("%q does not select itself", entry)
		}
	})
}

func TestSelection(t *testing.T) {
	include := func(entries ...string) state.Selection { return state.Selection{Include: entries} }
	exclude := func(entries ...string) state.Selection { return state.Selection{Exclude: entries} }
	for _, test := range []struct {
		name      string
		selection state.Selection
		has, not  []string // storage keys or URLs
	}{
		{"all", state.Selection{}, []string{"https://a.example/", "https://a.example/^0https://b.example"}, nil},
		{"origin", include("https://a.example"), []string{"https://a.example/", "https://a.example/^31", "chrome-extension://id/"},
			[]string{"http://a.example/", "https://a.example:8443/", "https://www.a.example/", "https://a.example/^0https://b.example", "https://a.example/^11^22"}},
		{"port", include("http://127.0.0.1:81"), []string{"http://127.0.0.1:81/"}, []string{"http://127.0.0.1:82/", "http://127.0.0.1/"}},
		{"host", include("a.example"), []string{"https://a.example/", "http://a.example:81/"}, []string{"https://www.a.example/", "https://ba.example/"}},
		{"below", include("*.a.example"), []string{"https://a.example/", "https://x.www.a.example:1/"}, []string{"https://ba.example/"}},
		{"framed below both", include("https://a.example", "b.example"), []string{"https://a.example/^0https://b.example"}, []string{"https://c.example/^0https://b.example"}},
		{"a host of the site", include("https://w.example", "https://www.b.example"), []string{"https://w.example/^0https://b.example"}, nil},
		{"without", exclude("https://a.example"), []string{"https://b.example/", "http://c.example/"}, []string{"https://a.example/", "https://a.example/^31"}},
		{"without what is framed", exclude("b.example"), []string{"https://a.example/"}, []string{"https://a.example/^0https://b.example", "https://b.example/^0https://a.example"}},
		{"both", state.Selection{Include: []string{"*.a.example"}, Exclude: []string{"x.a.example"}}, []string{"https://a.example/"}, []string{"https://x.a.example/", "https://b.example/"}},
	} {
		for _, key := range test.has {
			if !test.selection.HasKey(key) {
				t.Errorf("%s: not %s", test.name, key)
			}
		}
		for _, key := range test.not {
			if test.selection.HasKey(key) {
				t.Errorf("%s: %s", test.name, key)
			}
		}
	}
}

func TestSelectedCookies(t *testing.T) {
	at := func(domain, partition string) state.Cookie {
		c := state.Cookie{Name: "n", Domain: domain, Path: "/"}
		if partition != "" {
			c.Partition = &state.PartitionKey{TopLevelSite: partition}
		}
		return c
	}
	in, out := state.Selection{Include: []string{"https://www.a.example:8443"}}, state.Selection{Exclude: []string{"https://www.a.example"}}
	for _, test := range []struct {
		c       state.Cookie
		in, out bool
	}{
		{at("www.a.example", ""), true, false},
		{at(".www.a.example", ""), true, false},
		{at(".a.example", ""), true, true}, // www receives it, and it belongs to the whole domain
		{at("a.example", ""), false, true},
		{at(".b.example", ""), false, true},
		{at("www.a.example", "https://a.example"), true, false},
		{at("www.a.example", "https://b.example"), false, false},
	} {
		if got := in.HasCookie(test.c); got != test.in {
			t.Errorf("%+v with: %t", test.c, got)
		}
		if got := out.HasCookie(test.c); got != test.out {
			t.Errorf("%+v without: %t", test.c, got)
		}
	}
}

func TestSelectedPatterns(t *testing.T) {
	s := state.Selection{Include: []string{"https://www.a.example"}}
	for pattern, want := range map[string]bool{"https://www.a.example:443": true, "http://www.a.example:80": false, "[*.]a.example": true,
		"[*.]b.example": false, "*": true, "https://[*.]a.example": true, "https://b.example:443": false, "chrome-extension://id": true, "b.example": false} {
		if got := s.HasPattern(pattern); got != want {
			t.Errorf("%s: %t", pattern, got)
		}
	}
}

func TestSelectedDocument(t *testing.T) {
	doc := state.Document{
		Cookies: []state.Cookie{{Name: "a", Domain: "a.example"}, {Name: "b", Domain: "b.example"}, {Name: "c", Domain: "b.example"}},
		Local:   []state.Area{{StorageKey: "https://a.example/"}, {StorageKey: "https://b.example/", Items: []state.Item{{Key: "k"}}}},
		Tabs: []state.Tab{
			{URL: "https://a.example/x", Current: 1, History: []state.HistoryEntry{{URL: "https://b.example/"}, {URL: "https://a.example/x"}},
				Session: []state.Area{{StorageKey: "https://a.example/"}, {StorageKey: "https://b.example/^0https://a.example", Items: []state.Item{{Key: "k"}}}}},
			{URL: "https://b.example/", Session: []state.Area{{StorageKey: "https://b.example/", Items: []state.Item{{Key: "k"}, {Key: "l"}}}}}, {URL: "about:blank"},
		},
		Missed: []state.Missed{{Component: "local_storage", Reason: "of an origin that is not known"}, {Component: "local_storage", Origin: "https://b.example/"}},
		Inventory: state.Inventory{{Component: "indexed_db", Origin: "https://a.example/", Items: 1}, {Component: "indexed_db", Origin: "https://b.example/", Items: 2},
			{Component: "history", Items: 3}, {Component: "preferences", Items: 1}},
	}
	got, lines := state.Selection{Include: []string{"https://a.example"}}.Document(doc)
	want := state.Document{TabsByURL: true,
		Cookies: []state.Cookie{{Name: "a", Domain: "a.example"}}, Local: []state.Area{{StorageKey: "https://a.example/"}},
		Tabs: []state.Tab{{URL: "https://a.example/x", History: []state.HistoryEntry{{URL: "https://a.example/x"}}, Session: []state.Area{{StorageKey: "https://a.example/"}}},
			{URL: "about:blank"}},
		Missed:    []state.Missed{{Component: "local_storage", Reason: "of an origin that is not known"}},
		Inventory: state.Inventory{{Component: "indexed_db", Origin: "https://a.example/", Items: 1}, {Component: "preferences", Items: 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	dropped := map[string]int{}
	for _, line := range lines {
		if line.Saved != line.Dropped || line.Reason.Code != report.LeftOut {
			t.Errorf("%+v", line)
		}
		dropped[line.Name+" "+line.Origin] = line.Dropped
	}
	if diff := cmp.Diff(map[string]int{"cookies b.example": 2, "local_storage https://b.example/": 1, "tabs https://b.example": 1, "tab_history https://a.example": 1,
		"session_storage https://b.example/^0https://a.example": 1, "session_storage https://b.example/": 2, "indexed_db https://b.example/": 2, "history ": 3}, dropped); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if len(doc.Tabs[0].History) != 2 || len(doc.Cookies) != 3 {
		t.Error("the original document was changed")
	}
	if same, lines := (state.Selection{}).Document(doc); lines != nil || same.TabsByURL {
		t.Error("nothing to leave out")
	}
}
