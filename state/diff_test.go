package state_test

import (
	"encoding/json"
	"fmt"
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
	got, unknown, _ := state.Diff(t.Context(), before, after, false)
	if diff := cmp.Diff([]string{"hsts", "indexed_db"}, names(unknown)); diff != "" {
		t.Errorf("not compared (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	raw, err := json.Marshal(got)
	if err != nil || strings.Contains(string(raw), "secret") {
		t.Errorf("%s, %v", raw, err)
	}
	valued, _, _ := state.Diff(t.Context(), before, after, true)
	if diff := cmp.Diff(map[string]state.Values{"gone at /p": values("g", nil), "kept below https://b.example": values(nil, "k"),
		"token": values("old-secret", "new-secret")}, valued[0].Values); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, _, _ := state.Diff(t.Context(), after, before, false); len(got) != len(want) || got[0].Added[0] != "gone at /p" {
		t.Errorf("back: %+v", got)
	}
}

func names(list []state.Uncompared) []string {
	all := []string{}
	for _, u := range list {
		all = append(all, strings.TrimSpace(u.Name+" "+u.Origin))
	}
	return all
}

// values returns the Values of a name; nil means none.
func values(before, after any) state.Values {
	text := func(v any) *string {
		s, there := v.(string)
		if !there {
			return nil
		}
		return &s
	}
	return state.Values{Before: text(before), After: text(after)}
}

// What a document does not know is not a change. A number is not compared with another
// document's names.
func TestDiffOfWhatIsNotKnown(t *testing.T) {
	const a, b, gone = "https://a.example/", "https://b.example/", "https://gone.example/"
	area := func(key string, names ...string) state.Area {
		area := state.Area{StorageKey: key}
		for _, n := range names {
			area.Items = append(area.Items, state.Item{Key: n, Value: n})
		}
		return area
	}
	disk := func(component, origin string, items int) state.Holding {
		return state.Holding{Component: component, Origin: origin, Items: items}
	}
	// Live: names of the origins with a frame, numbers of the others.
	live := state.Document{Datadir: state.DatadirLive, Complete: true, Local: []state.Area{area(a, "k")}, Tabs: []state.Tab{{URL: a}},
		Inventory: state.Inventory{disk("local_storage", a, 1), disk("local_storage", b, 2), disk("local_storage", gone, 1), disk("hsts", "", 1)}}
	clean := state.Document{Datadir: state.DatadirClean, Complete: true, FromDisk: []string{"cookies", "local_storage"},
		Local: []state.Area{area(a, "k", "new"), area(b, "x", "y")}, Tabs: live.Tabs,
		Inventory: state.Inventory{disk("local_storage", a, 2), disk("local_storage", b, 2), {Component: "hsts", Uncounted: "too large"},
			{Component: "indexed_db", Origin: a, Items: 1, Damage: "a record is damaged"}}}
	crash := state.Document{Datadir: state.DatadirCrash, Inventory: state.Inventory{disk("local_storage", a, 2), disk("cookies", "a.example", 1)}}
	file := state.Document{Datadir: state.DatadirNone, Complete: true, Cookies: []state.Cookie{{Name: "c", Domain: "a.example"}},
		IndexedDB: []state.Databases{{Origin: "https://a.example", Databases: []state.Database{{Name: "db"}}}}}
	for _, x := range []struct {
		name          string
		before, after state.Document
		changes       []string
		unknown       []string
	}{
		{"live and clean", live, clean, []string{"local_storage https://a.example/ 1 2 +1", "local_storage https://gone.example/ 1 0"},
			[]string{"hsts", "indexed_db https://a.example/", "local_storage", "local_storage https://b.example/"}},
		{"clean and crash", clean, crash, []string{"cookies a.example 0 1", "local_storage https://b.example/ 2 0 +2"},
			[]string{"cookies", "hsts", "indexed_db https://a.example/", "local_storage https://a.example/", "tabs"}},
		{"a crash and state without a profile", crash, file, []string{"indexed_db https://a.example/ 0 1 +1", "local_storage https://a.example/ 2 0"},
			[]string{"cookies a.example", "local_storage"}},
		{"a profile that was not counted", state.Document{Datadir: state.DatadirClean, Complete: true,
			Inventory: state.Inventory{{Component: "datadir", Uncounted: "there was no time to read it"}}}, live,
			[]string{"tabs https://a.example 0 1 +1"}, []string{"datadir", "hsts", "local_storage"}},
		{"what a tab did not give", state.Document{Complete: true, Missed: []state.Missed{{Component: "session_storage", Origin: a + "?secret", Reason: "r"},
			{Component: "tab_history", Origin: a + "?secret", Reason: "r"}}}, state.Document{Complete: true,
			Tabs: []state.Tab{{URL: a, Session: []state.Area{area(a, "k")}, Current: 1, History: []state.HistoryEntry{{URL: b}, {URL: a}}}}},
			[]string{"tabs https://a.example 0 1 +1"}, []string{"session_storage https://a.example/", "tab_history https://a.example"}},
	} {
		changes, unknown, _ := state.Diff(t.Context(), x.before, x.after, true)
		got := []string{}
		for _, c := range changes {
			line := fmt.Sprintf("%s %s %d %d", c.Name, c.Origin, c.Before, c.After)
			if n := len(c.Added) + len(c.Removed) + len(c.Changed); n > 0 {
				line += fmt.Sprintf(" +%d", n)
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(x.changes, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", x.name, diff)
		}
		if diff := cmp.Diff(x.unknown, names(unknown)); diff != "" {
			t.Errorf("%s, uncompared (-want +got):\n%s", x.name, diff)
		}
	}
}

// Things with their own names are compared by name. For cookies and similar things the
// differing attributes are returned, and for passkeys never a key.
func TestDiffOfAttributes(t *testing.T) {
	cookie := func(expires float64) state.Cookie {
		return state.Cookie{Name: "sid", Value: "same", Domain: "a.example", Path: "/", Expires: expires, Session: expires < 0, Secure: true}
	}
	passkey := func(key string, count int64) state.Passkeys {
		return state.Passkeys{Enabled: true, Credentials: []state.Passkey{{ID: []byte("id"), RPID: "a.example", PrivateKey: []byte(key), SignCount: count}}}
	}
	extension := func(version, session string) []state.Extension {
		return []state.Extension{{ID: "x", Name: "X", Version: version, Enabled: true, Session: map[string]json.RawMessage{"k": json.RawMessage(session)}}}
	}
	before := state.Document{Complete: true, Cookies: []state.Cookie{cookie(-1)}, Passkeys: passkey("old-secret", 1), Extensions: extension("1", `"a"`),
		Permissions: []state.PermissionGrant{{Origin: "https://a.example", Permission: map[string]any{"name": "midi"}, Setting: "granted"}},
		Overrides:   state.Overrides{Locale: "de", Proxy: &state.Proxy{Password: "old-secret"}}}
	after := state.Document{Complete: true, Cookies: []state.Cookie{cookie(1.8e9)}, Passkeys: passkey("new-secret", 2), Extensions: extension("2", `"b"`),
		Permissions: []state.PermissionGrant{{Origin: "https://a.example", Permission: map[string]any{"name": "midi"}, Setting: "denied"}},
		Overrides:   state.Overrides{Timezone: "UTC", Proxy: &state.Proxy{Password: "new-secret"}}}
	changed := func(before, after any) *state.Values { v := values(before, after); return &v }
	none := []string{}
	want := []state.Change{
		{Name: "cookies", Origin: "a.example", Added: none, Removed: none, Changed: []string{"sid"}, Before: 1, After: 1,
			Attributes: map[string]map[string]*state.Values{"sid": {"expires": changed(nil, "2027-01-15T08:00:00Z")}}},
		{Name: "extension_storage", Origin: "chrome-extension://x", Added: none, Removed: none, Changed: []string{"k"}, Before: 1, After: 1,
			Values: map[string]state.Values{"k": values(`"a"`, `"b"`)}},
		{Name: "extensions", Origin: "chrome-extension://x", Added: none, Removed: none, Changed: []string{"X"}, Before: 1, After: 1,
			Attributes: map[string]map[string]*state.Values{"X": {"version": changed("1", "2")}}},
		{Name: "overrides", Added: []string{"timezone"}, Removed: []string{"locale"}, Changed: []string{"proxy"}, Before: 2, After: 2},
		{Name: "passkeys", Origin: "a.example", Added: none, Removed: none, Changed: []string{"aWQ"}, Before: 1, After: 1,
			Attributes: map[string]map[string]*state.Values{"aWQ": {"sign_count": changed("1", "2"), "value": nil}}},
		{Name: "permissions", Origin: "https://a.example", Added: none, Removed: none, Changed: []string{"midi"}, Before: 1, After: 1,
			Attributes: map[string]map[string]*state.Values{"midi": {"setting": changed("granted", "denied")}}},
	}
	got, unknown, _ := state.Diff(t.Context(), before, after, true)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"extension_storage chrome-extension://x"}, names(unknown)); diff != "" {
		t.Errorf("not compared (-want +got):\n%s", diff)
	}
	// Two ways of reading an expiry differ by less than a second.
	closer, _, _ := state.Diff(t.Context(), state.Document{Complete: true, Cookies: []state.Cookie{cookie(1.8e9)}},
		state.Document{Complete: true, Cookies: []state.Cookie{cookie(1.8e9 - 1e-6)}}, false)
	if len(closer) != 0 {
		t.Errorf("%+v", closer)
	}
}

// Nothing differs from itself. What is added in one direction is removed in the other.
func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"cookies":[{"name":"a"},{"name":"a"}]}`), []byte(`{"tabs":[{"url":"%zz"},{"url":"https://a.example/?q"}]}`))
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var before, after state.Document
		if json.Unmarshal(a, &before) != nil || json.Unmarshal(b, &after) != nil {
			return
		}
		if same, _, _ := state.Diff(t.Context(), before, before, true); len(same) != 0 {
			t.Errorf("%+v", same)
		}
		there, unknown, _ := state.Diff(t.Context(), before, after, false)
		back, asUnknown, _ := state.Diff(t.Context(), after, before, false)
		if len(unknown) != len(asUnknown) {
			t.Errorf("%+v and %+v", unknown, asUnknown)
		}
		for i := range there {
			if i >= len(back) || len(there[i].Added) != len(back[i].Removed) || len(there[i].Changed) != len(back[i].Changed) {
				t.Errorf("%+v and %+v", there, back)
				break
			}
		}
	})
}
