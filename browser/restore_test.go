package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/state"
)

// fillTabs creates an environment in a fresh Chrome: two tabs with separate state, the first
// one in front.
func (r *rig) fillTabs(b *Browser, s *site) {
	r.t.Helper()
	r.open(b, s.url+"/one")
	r.open(b, s.url+"/two")
	r.eval(b, s.url+"/one", `document.cookie = "session=s1"; document.cookie = "kept=k1; max-age=3600";
		localStorage.setItem("token", "l1"); sessionStorage.setItem("step", "one"); window.name = "first"; 1`)
	r.eval(b, s.url+"/two", `sessionStorage.setItem("step", "two"); window.name = "second"; 1`)
	r.front(b, s.url+"/one")
}

// front activates a tab and waits until it is in front.
func (r *rig) front(b *Browser, url string) {
	r.t.Helper()
	if _, err := cdp.Call(within(r.t), b.driver, target.ActivateTarget, target.ActivateTargetParams{TargetID: r.page(b, url)}); err != nil {
		r.t.Fatal(err)
	}
	await(r.t, url+" is in front", func() bool { return r.eval(b, url, "document.visibilityState") == "visible" })
}

// readTabs reads back what fillTabs wrote.
func (r *rig) readTabs(b *Browser, s *site) map[string]string {
	r.t.Helper()
	const script = `[document.cookie.split("; ").sort().join(" "), localStorage.getItem("token"), sessionStorage.getItem("step"), window.name, document.visibilityState].join("|")`
	got := map[string]string{}
	for _, path := range []string{"/one", "/two"} {
		got[path] = r.eval(b, s.url+path, script)
	}
	return got
}

var restoredTabs = map[string]string{
	"/one": "kept=k1 session=s1|l1|one|first|visible",
	"/two": "kept=k1 session=s1|l1|two|second|hidden",
}

// A clean user data directory restores everything. Each tab has its state before its
// first script, and the site gets one request for each tab, with cookies. A tab that its
// application navigated after it was read is there too.
func TestRestoreClean(t *testing.T) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/one": seen, "/two": seen})
	b := r.fresh()
	r.fillTabs(b, s)
	r.open(b, s.url+"/app")
	r.eval(b, s.url+"/app", `location.hash = "/list"; window.name = "third"; 1`)
	r.front(b, s.url+"/one")
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	r.eval(b, s.url+"/app#/list", `history.replaceState(null, "", "/app?list"); 1`)
	r.page(b, s.url+"/app?list")
	if doc.Datadir, err = b.Close(within(t)); err != nil || doc.Datadir != state.DatadirClean {
		t.Fatalf("%s, %v", doc.Datadir, err)
	}
	// The profile of an older Chrome is used unchanged.
	r.stampOlder(b, &doc)
	before := len(s.requests())
	b, report := r.restored(b.dir, doc, Options{RestoreTabs: true})
	if diff := cmp.Diff(restoredTabs, r.readTabs(b, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for path, want := range map[string]string{"/one": "l1|one|first", "/two": "l1|two|second"} {
		if got := r.eval(b, s.url+path, "window.seen"); got != want {
			t.Errorf("the first script of %s saw %s, want %s", path, got, want)
		}
	}
	if got := r.eval(b, s.url+"/app?list", "window.name"); got != "third" {
		t.Errorf("the tab that navigated has the name %q", got)
	}
	asked := s.requests()[before:]
	slices.Sort(asked)
	if diff := cmp.Diff([]string{"/app session=s1; kept=k1", "/one session=s1; kept=k1", "/two session=s1; kept=k1"}, sortCookies(asked)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	r.checkComplete(b, doc, report, 3)
	if line(report, state.ComponentHistory, "").Dropped != 0 {
		t.Errorf("history: %+v", line(report, state.ComponentHistory, ""))
	}
}

// stampOlder sets an older version in the document and in the profile of a closed Chrome,
// wherever Chrome stores it.
func (r *rig) stampOlder(b *Browser, doc *state.Document) {
	r.t.Helper()
	doc.Chrome.Version = "120.0.1.2"
	stamped := 0
	for _, name := range []string{"Last Version", "Local State", profile.Folder(b.dir.Profile()) + "/Preferences"} {
		file := filepath.Join(b.dir.Profile(), name)
		body, err := os.ReadFile(file)
		if err != nil {
			r.t.Fatal(err)
		}
		stamped += strings.Count(string(body), b.version)
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(body), b.version, doc.Chrome.Version)), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	if stamped < 2 {
		r.t.Errorf("Chrome stores its version in %d places", stamped)
	}
}

// seen records what the page's first script finds.
const seen = `<script>window.seen = [localStorage.getItem("token"), sessionStorage.getItem("step"), window.name].join("|")</script>`

func sortCookies(requests []string) []string {
	for i, r := range requests {
		requests[i] = strings.Replace(r, "kept=k1; session=s1", "session=s1; kept=k1", 1)
	}
	return requests
}

// checkComplete fails the test unless the report and a verification find everything that fillTabs
// wrote.
func (r *rig) checkComplete(b *Browser, doc state.Document, report []state.Component, tabs int) {
	r.t.Helper()
	for name, want := range map[string]int{state.ComponentCookies: 2, state.ComponentLocalStorage: 1,
		state.ComponentSessionStorage: 1, state.ComponentTabs: tabs, state.ComponentWindowName: tabs} {
		if got := line(report, name, ""); got.Saved != want || got.Restored != want || got.Dropped != 0 {
			r.t.Errorf("%+v, want %d", got, want)
		}
	}
	found, err := b.Verify(within(r.t), doc, report)
	if err != nil || len(found.Differences) != 0 || len(found.Components) != 0 {
		r.t.Errorf("%s: verification: %+v, %v", b.Engine(), found, err)
	}
	// The tabs' scripts do not undo what a client does afterwards.
	url := doc.Tabs[0].URL
	r.eval(b, url, `window.name = "changed"; sessionStorage.clear(); window.old = 1; location.reload(); 1`)
	await(r.t, url+" is reloaded", func() bool { return r.eval(b, url, "window.old === undefined") == "true" })
	if got := r.eval(b, url, `window.name + sessionStorage.length`); got != "changed0" {
		r.t.Errorf("after a reload the page has %q", got)
	}
}

// In a restore of a live copy, the captured state overrides the files, item by item.
func TestRestoreLive(t *testing.T) {
	r := newRig(t)
	s := newSite(t, map[string]string{"/one": seen, "/two": seen})
	b := r.fresh()
	r.fillTabs(b, s)
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Freeze(within(t)); err != nil {
		t.Fatal(err)
	}
	dir := r.copied(b)
	if err := b.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
	before := len(s.requests())
	b, report := r.restored(dir, doc, Options{RestoreTabs: true})
	if diff := cmp.Diff(restoredTabs, r.readTabs(b, s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := r.eval(b, s.url+"/two", "window.seen"); got != "l1|two|second" {
		t.Errorf("the first script saw %s", got)
	}
	asked := s.requests()[before:]
	slices.Sort(asked)
	if diff := cmp.Diff([]string{"/one session=s1; kept=k1", "/two session=s1; kept=k1"}, sortCookies(asked)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	r.checkComplete(b, doc, report, 2)
}

// The user data directory of a crashed Chrome restores what was on disk.
func TestRestoreCrash(t *testing.T) {
	r := newRig(t)
	s := newSite(t, nil)
	b := r.fresh()
	r.fillTabs(b, s)
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if doc.Datadir, err = b.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	b, _ = r.restored(b.dir, doc, Options{RestoreTabs: true})
	r.readTabs(b, s)
	if err := b.Kill(within(t)); err != nil {
		t.Fatal(err)
	}
	unread := state.Document{SchemaVersion: state.SchemaVersion, Datadir: state.DatadirCrash}
	b, _ = r.restored(b.dir, unread, Options{RestoreTabs: true})
	pages, err := b.Pages(within(t))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%v, %v", pages, err)
	}
	if _, err := b.Navigate(within(t), s.url+"/one"); err != nil {
		t.Fatal(err)
	}
	if got := r.eval(b, s.url+"/one", `(document.cookie.match(/kept=k1/) || [""])[0] + localStorage.getItem("token")`); got != "kept=k1l1" {
		t.Errorf("the page has %q", got)
	}
}

// Without tabs there is one blank tab, and the rest of the environment.
func TestRestoreWithoutTabs(t *testing.T) {
	r := newRigOfEither(t)
	s := newSite(t, nil)
	saved := r.fresh()
	r.fillTabs(saved, s)
	doc := r.closed(saved)
	for _, as := range []state.Datadir{state.DatadirClean, state.DatadirLive} {
		t.Run(string(as), func(t *testing.T) {
			r := &rig{Starter: r.Starter, t: t, dirs: r.dirs + len(as)*10}
			doc.Datadir = as
			before := len(s.requests())
			b, report := r.restored(r.copied(saved), doc, Options{})
			pages, err := b.Pages(within(t))
			if err != nil || len(pages) != 1 || pages[0].URL != "about:blank" {
				t.Errorf("%+v, %v", pages, err)
			}
			if got := line(report, state.ComponentTabs, ""); got.Dropped != 2 || !got.OnPurpose() {
				t.Errorf("%+v", got)
			}
			if n := len(s.requests()) - before; n != 0 {
				t.Errorf("the site got %d requests", n)
			}
			jar, err := capture.Cookies(within(t), b.driver)
			if err != nil || len(jar) != 2 {
				t.Errorf("%d cookies, %v", len(jar), err)
			}
			if _, err := b.Navigate(within(t), s.url+"/one"); err != nil {
				t.Fatal(err)
			}
			if got := r.eval(b, s.url+"/one", `localStorage.getItem("token")`); got != "l1" {
				t.Errorf("localStorage has %q", got)
			}
		})
	}
}

// A tab at an address that no session may show is not restored.
func TestRestoreRefusesTabs(t *testing.T) {
	r := newRig(t)
	doc := state.Document{SchemaVersion: state.SchemaVersion, Complete: true, Datadir: state.DatadirLive,
		Tabs: []state.Tab{{URL: "file:///etc/passwd", Active: true}, {URL: "chrome://settings"}}}
	b, report := r.restored(r.dir(), doc, Options{RestoreTabs: true})
	if got := line(report, state.ComponentTabs, ""); got.Saved != 2 || got.Dropped != 2 {
		t.Errorf("%+v", got)
	}
	pages, err := b.Pages(within(t))
	if err != nil || len(pages) != 1 || pages[0].URL != "about:blank" {
		t.Errorf("%+v, %v", pages, err)
	}
}

// Changes by the site after a restore are reported by name, without values, and blamed on
// the site. What was not restored is not blamed on it.
func TestVerifyBlames(t *testing.T) {
	r := newRigOfEither(t)
	s, id := newSite(t, nil), newSite(t, nil)
	b := r.fresh()
	r.open(b, id.url+"/renew")
	r.eval(b, id.url+"/renew", `localStorage.setItem("token", "old"); 1`)
	r.fillTabs(b, s)
	r.eval(b, s.url+"/one", `document.cookie = "third=t"; localStorage.setItem("other", "o"); 1`)
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if doc.Datadir, err = b.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	doc.Inventory, doc.FromDisk = r.inventory(b.dir).Inventory, []string{state.ComponentLocalStorage} // as after a save
	doc.Cookies = append(doc.Cookies, state.Cookie{Name: "lost", Domain: "lost.example", Path: "/", Session: true, Opaque: true})
	b, report := r.restored(b.dir, doc, Options{RestoreTabs: true})
	r.eval(b, s.url+"/one", `document.cookie = "kept=; max-age=0"; document.cookie = "session=rotated"; document.cookie = "new=n";
		localStorage.removeItem("token"); localStorage.setItem("added", "a"); sessionStorage.setItem("step", "other"); 1`)
	// A page that renews a token and goes elsewhere leaves no page of its origin.
	r.eval(b, id.url+"/renew", fmt.Sprintf(`localStorage.setItem("token", "new"); setTimeout(() => { location = %q }); 1`, s.url+"/three"))
	r.eval(b, s.url+"/three", "1")
	found, err := b.Verify(within(t), doc, report)
	if err != nil {
		t.Fatal(err)
	}
	want := []state.Difference{
		{Component: "cookies", Origin: "127.0.0.1", By: "site", Missing: 1, Changed: 1, Added: 1, Names: []string{"kept", "new", "session"}},
		{Component: "local_storage", Origin: s.url + "/", By: "site", Missing: 1, Added: 1, Names: []string{"added", "token"}},
		{Component: "local_storage", Origin: id.url + "/", By: "site", Changed: 1, Names: []string{"token"}},
		{Component: "session_storage", Origin: s.url + "/", By: "site", Changed: 1, Names: []string{"step"}},
	}
	slices.SortFunc(want[1:3], func(a, b state.Difference) int { return strings.Compare(a.Origin, b.Origin) })
	if diff := cmp.Diff(want, found.Differences); diff != "" || !found.OK() {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := line(report, state.ComponentCookies, "lost.example"); got.Dropped != 1 {
		t.Errorf("%+v", got)
	}
}
