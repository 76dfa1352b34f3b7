package browser

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/browser/apply"
	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// Package capture is tested here, because the test needs a Chrome and a driver.

// Every attribute of a cookie survives: read from one Chrome, written to another, read
// again.
func TestCookiesRoundTrip(t *testing.T) {
	soon := float64(time.Now().Add(time.Hour).Unix())
	cookie := func(name string, change func(*state.Cookie)) state.Cookie {
		c := state.Cookie{Name: name, Value: "v of " + name, Domain: "a.example", Path: "/", Expires: -1, Session: true,
			Secure: true, Priority: "Medium", SourceScheme: "Secure", SourcePort: 443}
		if change != nil {
			change(&c)
		}
		return c
	}
	jar := []state.Cookie{
		cookie("session", nil),
		cookie("persistent", func(c *state.Cookie) { c.Session, c.Expires = false, soon }),
		cookie("domain", func(c *state.Cookie) { c.Domain = ".a.example" }),
		cookie("__Host-id", nil),
		cookie("__Secure-id", func(c *state.Cookie) { c.Domain = ".a.example" }),
		cookie("strict", func(c *state.Cookie) { c.SameSite = "Strict" }),
		cookie("lax", func(c *state.Cookie) { c.SameSite = "Lax" }),
		cookie("none", func(c *state.Cookie) { c.SameSite = "None" }),
		cookie("http-only", func(c *state.Cookie) { c.HTTPOnly = true }),
		cookie("low", func(c *state.Cookie) { c.Priority = "Low" }),
		cookie("high", func(c *state.Cookie) { c.Priority = "High" }),
		cookie("path", func(c *state.Cookie) { c.Path = "/deep/er" }),
		cookie("path", nil),
		cookie("plain", func(c *state.Cookie) {
			c.Secure, c.SourceScheme, c.SourcePort, c.Domain = false, "NonSecure", 80, "b.example"
		}),
		cookie("empty", func(c *state.Cookie) { c.Value = "" }),
		cookie("odd", func(c *state.Cookie) { c.Value = `a="b c"=d` }),
		cookie("chips", func(c *state.Cookie) {
			c.SameSite, c.Partition = "None", &state.PartitionKey{TopLevelSite: "https://top.example"}
		}),
		cookie("chips", func(c *state.Cookie) {
			c.SameSite, c.Partition = "None", &state.PartitionKey{TopLevelSite: "https://top.example", HasCrossSiteAncestor: true}
		}),
		cookie("chips", func(c *state.Cookie) { c.SameSite = "None" }),
	}
	r := newRigOfEither(t)
	var read []state.Cookie
	for _, want := range []*[]state.Cookie{&jar, &read} {
		b := r.fresh()
		doc := state.Document{Cookies: append(*want, state.Cookie{Name: "expired", Value: "v", Domain: "a.example", Path: "/",
			Secure: true, Expires: 1000, Priority: "Medium", SourceScheme: "Secure", SourcePort: 443})}
		report, err := apply.All(within(t), b.driver, doc, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got := line(report, state.ComponentCookies, "a.example"); got.Dropped != 0 || got.Expired != 1 || got.Restored != got.Saved-1 {
			t.Errorf("%+v", got)
		}
		now, err := capture.Read(within(t), b.driver)
		if err != nil {
			t.Fatal(err)
		}
		byIdentity := cmpopts.SortSlices(func(a, b state.Cookie) bool { return a.Identity() < b.Identity() })
		if diff := cmp.Diff(*want, now.Cookies, byIdentity); diff != "" {
			t.Errorf("(-written +read):\n%s", diff)
		}
		read = now.Cookies
		if err := b.Kill(within(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// Applying cookies replaces the jar: other cookies of a stale user data directory are
// removed. A cookie that Chrome refuses is reported, and the others are written.
func TestCookiesReplaceTheJar(t *testing.T) {
	r := newRigOfEither(t)
	b := r.fresh()
	good := state.Cookie{Name: "good", Value: "v", Domain: "a.example", Path: "/", Expires: -1, Session: true}
	stale := state.Cookie{Name: "stale", Value: "v", Domain: "a.example", Path: "/", Expires: -1, Session: true}
	bad := state.Cookie{Name: "__Host-bad", Value: "v", Domain: ".c.example", Path: "/", Expires: -1, Session: true}
	opaque := state.Cookie{Name: "opaque", Value: "v", Domain: "d.example", Path: "/", Expires: -1, Session: true, Opaque: true}
	if _, err := apply.All(within(t), b.driver, state.Document{Cookies: []state.Cookie{stale}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	lines, err := apply.All(within(t), b.driver, state.Document{Cookies: []state.Cookie{good, bad, opaque}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for domain, want := range map[string]state.Component{
		"a.example": {Saved: 1, Restored: 1},
		"c.example": {Saved: 1, Dropped: 1, Reason: report.Refused.Reason()},
		"d.example": {Saved: 1, Dropped: 1, Reason: report.Unnamed.Reason()},
	} {
		want.Name, want.Origin = state.ComponentCookies, domain
		if diff := cmp.Diff(want, line(lines, state.ComponentCookies, domain), cmpopts.IgnoreFields(report.Reason{}, "Text")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", domain, diff)
		}
	}
	jar, err := capture.Cookies(within(t), b.driver)
	if err != nil || len(jar) != 1 || jar[0].Name != "good" {
		t.Errorf("%+v, %v", jar, err)
	}
}

// localStorage of every frame is read from full Chrome, and written into the shell without
// a request, exactly as it was read, whatever the strings contain.
func TestLocalStorageRoundTrip(t *testing.T) {
	r := newRigOfEither(t)
	third := newSite(t, nil)
	other := strings.Replace(third.url, "127.0.0.1", "localhost", 1) // another site than that of the page
	s := newSite(t, map[string]string{"/page": `<iframe src="` + other + `/inner"></iframe>`})
	b := r.fresh()
	r.open(b, s.url+"/page")
	const odd = `({"": "empty key", "</script>": "<!--\u2028\u2029", "nul\0key": "a\0b", "quote\"'` + "`" + `\\": "\n\r\t", "é\u{1F600}": "ü", "__proto__": "p", "big": "x".repeat(4 << 20), "none": ""})`
	r.eval(b, s.url+"/page", `for (const [k, v] of Object.entries(`+odd+`)) localStorage.setItem(k, v); localStorage.setItem("__proto__", "p"); 1`)
	await(t, "the frame has loaded", func() bool { return len(third.requests()) > 0 })
	doc, err := b.Capture(within(t))
	if err != nil || len(doc.Missed) != 0 {
		t.Fatalf("%v, missed %+v", err, doc.Missed)
	}
	keys := map[string]int{}
	for _, area := range doc.Local {
		keys[area.StorageKey] = len(area.Items)
	}
	partitioned := 0
	for key := range keys {
		if strings.HasPrefix(key, other) && strings.Contains(key, "^") {
			partitioned++
		}
	}
	if keys[s.url+"/"] != 8 || partitioned != 1 {
		t.Errorf("areas: %v", keys)
	}
	before := len(s.requests()) + len(third.requests())

	second := r.shell()
	report, err := apply.All(within(t), second.driver, doc, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if got := line(report, state.ComponentLocalStorage, s.url+"/"); got.Restored != 8 || got.Dropped != 0 {
		t.Errorf("%+v", got)
	}
	if n := len(s.requests()) + len(third.requests()) - before; n != 0 {
		t.Errorf("the sites got %d requests", n)
	}
	if pages, err := second.Pages(within(t)); err != nil || len(pages) != 1 {
		t.Errorf("%+v, %v", pages, err)
	}
	r.open(second, s.url+"/page")
	got := r.eval(second, s.url+"/page", `(() => { const want = `+odd+`; let same = Object.keys(localStorage).length === 8 && localStorage.getItem("__proto__") === "p";
		for (const [k, v] of Object.entries(want)) same = same && localStorage.getItem(k) === v; return same })()`)
	if got != "true" {
		t.Error("the page has different items")
	}
	// A hidden tab reads the same, even keys that are names of properties of every object.
	r.eval(second, s.url+"/page", `localStorage.setItem("getItem", "g"); localStorage.setItem("length", "l"); 1`)
	hidden, err := capture.OpenHiddenReader(within(t), second.driver)
	if err != nil {
		t.Fatal(err)
	}
	defer hidden.Close(within(t))
	await(t, "all items as a hidden tab reads them", func() bool {
		area, err := hidden.Local(within(t), s.url+"/")
		return err == nil && len(area.Items) == 10 && doc.Local[0].Missing(area) == 0
	})
	// An empty area is written too, so that a stale copy's items are removed.
	doc.Local = []state.Area{{StorageKey: s.url + "/", Items: []state.Item{}}}
	if _, err := apply.All(within(t), second.driver, doc, time.Now()); err != nil {
		t.Fatal(err)
	}
	// Chrome notifies the open page, one item at a time.
	await(t, "the area is empty", func() bool { return r.eval(second, s.url+"/page", "localStorage.length") == "0" })
}

// Half of a surrogate pair is not valid Unicode and cannot pass through CDP. If the user
// data directory contains one, writing leaves it as the site wrote it.
func TestLoneSurrogate(t *testing.T) {
	r := newRigOfEither(t)
	s := newSite(t, nil)
	b := r.fresh()
	r.open(b, s.url+"/page")
	r.eval(b, s.url+"/page", `localStorage.setItem("half", "a\ud800b"); localStorage.setItem("\udc00", "k"); localStorage.setItem("whole", "w"); 1`)
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	r.eval(b, s.url+"/page", `localStorage.setItem("whole", "stale"); localStorage.setItem("stale", "s"); localStorage.setItem("length", "l"); 1`)
	if _, err := apply.All(within(t), b.driver, doc, time.Now()); err != nil {
		t.Fatal(err)
	}
	const items = `[localStorage.length, localStorage.getItem("half") === "a\ud800b", localStorage.getItem("\udc00"), localStorage.getItem("whole")].join(" ")`
	await(t, "the page finds what was read", func() bool { return r.eval(b, s.url+"/page", items) == "3 true k w" })
}

// What was read of a Chrome that died meanwhile is not complete. It would otherwise count as
// all that there is, and replace what Chrome has on disk.
func TestCaptureOfADeadChrome(t *testing.T) {
	r := newRigOfEither(t)
	b := r.fresh()
	if err := b.process.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if doc, err := b.Capture(t.Context()); err == nil || doc.Complete {
		t.Errorf("complete: %v, %v", doc.Complete, err)
	}
}

// A cookie that a page has just set is read, on a busy machine too. Without the wait of
// capture.Read it was missing twice in a thousand times.
func TestCookieJustSet(t *testing.T) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/one": `<iframe src="/two"></iframe>`, "/two": seen})
	b, err := r.Fresh(within(t), r.dir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	r.open(b, s.url+"/one")
	for i := range 200 {
		value := strconv.Itoa(i)
		in := []string{"document", "frames[0].document"}[i%2]
		r.eval(b, s.url+"/one", in+`.cookie = "n=`+value+`"; 1`)
		doc, err := capture.Read(within(t), b.driver)
		if err != nil {
			t.Fatal(err)
		}
		if len(doc.Cookies) != 1 || doc.Cookies[0].Value != value {
			t.Fatalf("the page set n=%s; the jar has %+v", value, doc.Cookies)
		}
	}
}

// A page that replaces what reads it by a script that never yields can still be read.
func TestCaptureWhoseScriptsNeverReturn(t *testing.T) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/one": seen})
	b, err := r.Fresh(within(t), r.dir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	r.open(b, s.url+"/one")
	r.eval(b, s.url+"/one", `Object.getOwnPropertyDescriptor = () => { for (;;); }; sessionStorage.setItem("step", "two"); window.name = "mine"; 1`)
	doc, err := capture.Read(within(t), b.driver)
	if err != nil || len(doc.Missed) > 0 || len(doc.Tabs) != 1 {
		t.Fatalf("%d tabs, missed: %+v, %v", len(doc.Tabs), doc.Missed, err)
	}
	if tab := doc.Tabs[0]; tab.Name != "mine" || len(tab.Session) != 1 || len(tab.Session[0].Items) != 1 {
		t.Errorf("the tab: %+v", tab)
	}
}
