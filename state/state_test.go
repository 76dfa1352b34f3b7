package state_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func cookie(change func(*state.Cookie)) state.Cookie {
	c := state.Cookie{Name: "n", Value: "secret", Domain: ".a.example", Path: "/", Expires: -1, Session: true}
	if change != nil {
		change(&c)
	}
	return c
}

// Domain, path, name and partition identify a cookie, and nothing else does. The identity
// does not contain the value.
func TestIdentity(t *testing.T) {
	base := cookie(nil).Identity()
	for name, change := range map[string]func(*state.Cookie){
		"value":         func(c *state.Cookie) { c.Value = "other" },
		"expiry":        func(c *state.Cookie) { c.Session, c.Expires = false, 1 },
		"flags":         func(c *state.Cookie) { c.Secure, c.HTTPOnly, c.SameSite, c.Priority = true, true, "Lax", "High" },
		"source scheme": func(c *state.Cookie) { c.SourceScheme, c.SourcePort = "Secure", 443 },
	} {
		if got := cookie(change).Identity(); got != base {
			t.Errorf("a different %s should not change the identity: %q", name, got)
		}
	}
	seen := map[string]string{base: "unchanged"}
	for name, change := range map[string]func(*state.Cookie){
		"name":           func(c *state.Cookie) { c.Name = "m" },
		"path":           func(c *state.Cookie) { c.Path = "/p" },
		"host":           func(c *state.Cookie) { c.Domain = "a.example" },
		"shifted bounds": func(c *state.Cookie) { c.Domain, c.Path = ".a.example/", "" },
		"partition":      func(c *state.Cookie) { c.Partition = &state.PartitionKey{TopLevelSite: "https://t.example"} },
		"ancestor": func(c *state.Cookie) {
			c.Partition = &state.PartitionKey{TopLevelSite: "https://t.example", HasCrossSiteAncestor: true}
		},
	} {
		id := cookie(change).Identity()
		if other, taken := seen[id]; taken {
			t.Errorf("%s and %s have the same identity: %q", name, other, id)
		}
		seen[id] = name
	}
}

func TestExpired(t *testing.T) {
	at := float64(now.Unix())
	for _, test := range []struct {
		session bool
		expires float64
		want    bool
	}{{true, -1, false}, {false, at - 0.5, true}, {false, at + 0.5, false}, {false, -1, true}, {true, 1, false}} {
		c := cookie(func(c *state.Cookie) { c.Session, c.Expires = test.session, test.expires })
		if got := c.Expired(now); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}

func TestCompareCookies(t *testing.T) {
	there, changed := cookie(nil), cookie(func(c *state.Cookie) { c.Name = "changed" })
	expired := cookie(func(c *state.Cookie) { c.Name, c.Session, c.Expires = "expired", false, 1 })
	refused := cookie(func(c *state.Cookie) { c.Name, c.Domain = "refused", "b.example" })
	gone := cookie(func(c *state.Cookie) { c.Name, c.Domain = "gone", "c.example" })
	after := changed
	after.Value = "the site's"
	unknown := cookie(func(c *state.Cookie) { c.Domain = "unknown.example" })
	got := state.CompareCookies([]state.Cookie{gone, there, changed, expired, refused}, []state.Cookie{after, there, unknown}, now,
		map[string]report.Reason{refused.Identity(): report.Refused.With("refused")})
	want := []state.Component{
		{Name: "cookies", Origin: "a.example", Saved: 3, Restored: 2, Expired: 1},
		{Name: "cookies", Origin: "b.example", Saved: 1, Dropped: 1, Reason: report.Refused.With("refused")},
		{Name: "cookies", Origin: "c.example", Saved: 1, Dropped: 1, Reason: report.NotInProfile.Reason()},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := state.CompareCookies(nil, []state.Cookie{unknown}, now, nil); got == nil || len(got) != 0 {
		t.Errorf("without cookies: %#v", got)
	}
}

func document() state.Document {
	area := state.Area{StorageKey: "https://a.example/", Items: []state.Item{{Key: "k", Value: "v"}, {Key: "", Value: "\u2028\x00"}}}
	return state.Document{
		SchemaVersion: state.SchemaVersion, CapturedAt: now, Datadir: state.DatadirLive, Complete: true,
		Chrome: state.Chrome{Version: "156.0.8078.79", Engine: "chrome", UserAgent: "UA"},
		Cookies: []state.Cookie{
			{Name: "n", Value: `a"b`, Domain: ".a.example", Path: "/p", Expires: 1767323045.25, HTTPOnly: true, Secure: true, SameSite: "None",
				Priority: "High", SourceScheme: "Secure", SourcePort: 8443,
				Partition: &state.PartitionKey{TopLevelSite: "https://t.example", HasCrossSiteAncestor: true}, Opaque: true},
			cookie(nil),
		},
		Local: []state.Area{area, {StorageKey: "https://b.example/", Items: []state.Item{}}},
		Tabs: []state.Tab{
			{TargetID: "T", URL: "https://a.example/", Title: "t", Active: true, Name: "w", Session: []state.Area{area},
				History: []state.HistoryEntry{{URL: "https://a.example/", Title: "t"}}, Current: 0},
			{TargetID: "U", URL: "about:blank", Session: []state.Area{area}},
		},
		Missed: []state.Missed{{Component: "tabs", Origin: "https://c.example/", Reason: "r"}},
	}
}

// Later versions read state.json: no part of the document is lost, and its field names
// stay.
func TestDocumentRoundTrip(t *testing.T) {
	want := document()
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got state.Document
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var words map[string]json.RawMessage
	if err := json.Unmarshal(raw, &words); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"schema_version", "captured_at", "datadir", "chrome", "complete", "cookies", "local_storage", "tabs", "missed"} {
		if words[word] == nil {
			t.Errorf("it lacks %q", word)
		}
	}
}

func TestCaptureLines(t *testing.T) {
	want := []state.Component{
		{Name: "cookies", Origin: "a.example", Saved: 2},
		{Name: "local_storage", Origin: "https://a.example/", Saved: 2},
		{Name: "local_storage", Origin: "https://b.example/"},
		{Name: "session_storage", Origin: "https://a.example/", Saved: 4},
		{Name: "tabs", Saved: 2},
		{Name: "window_name", Saved: 1},
	}
	if diff := cmp.Diff(want, state.CaptureLines(document())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]state.Component{{Name: "tabs"}}, state.CaptureLines(state.Document{Complete: true})); diff != "" {
		t.Errorf("of an empty document (-want +got):\n%s", diff)
	}
}

func TestMissing(t *testing.T) {
	saved := state.Area{Items: []state.Item{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}, {Key: "", Value: "3"}}}
	is := state.Area{Items: []state.Item{{Key: "b", Value: "changed"}, {Key: "new", Value: "4"}}}
	if n := saved.Missing(is); n != 2 {
		t.Errorf("%d are missing, want 2", n)
	}
	if n := saved.Missing(saved); n != 0 {
		t.Errorf("%d are missing in the area itself", n)
	}
}

// A document from an archive is untrusted input. Reading and counting it never panics. A
// document that was read is the same after writing and reading it again.
func FuzzDocument(f *testing.F) {
	raw, err := json.Marshal(document())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"cookies":[null,{"expires":1e308,"partition_key":{}}],"tabs":[{"session_storage":[{}]}],"local_storage":null}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var doc state.Document
		if json.Unmarshal(raw, &doc) != nil {
			return
		}
		state.CaptureLines(doc)
		for _, line := range state.CompareCookies(doc.Cookies, nil, now, nil) {
			if line.Saved != line.Restored+line.Dropped+line.Expired {
				t.Errorf("%+v", line)
			}
		}
		again, err := json.Marshal(doc)
		if err != nil {
			return // JSON cannot express this time
		}
		var same state.Document
		if err := json.Unmarshal(again, &same); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(doc, same); diff != "" {
			t.Errorf("(-read +again):\n%s", diff)
		}
	})
}

// The estimate never exceeds the size as JSON, and comes close to it if storage is large.
func TestStrings(t *testing.T) {
	all := "plain <&> \"quoted\" \\ \n\x00\x1f é 😀"
	item := state.Item{Key: "k", Value: strings.Repeat(all, 1000)}
	doc := state.Document{Local: []state.Area{{Items: []state.Item{item}}}, Tabs: []state.Tab{{Session: []state.Area{{Items: []state.Item{item}}}}},
		Cookies: []state.Cookie{{Name: "n", Value: all}}}
	raw, err := json.Marshal(doc)
	if n := doc.MinJSONSize(); err != nil || n > len(raw) || n < len(raw)*9/10 {
		t.Errorf("%d of %d, %v", n, len(raw), err)
	}
}
