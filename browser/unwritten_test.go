package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/profile/localstorage"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// Chrome may exit with status 0 before it has written localStorage (eight origins with 5
// MB each, written just before, are enough on two cores). A flush writes it before. What
// did not reach the disk is found by comparison with the capture, and restored from the
// capture. What was written again after the capture is not.
func TestLocalStorageThatDidNotReachTheDisk(t *testing.T) {
	r := newRig(t)
	s := newSite(t, nil)
	other := strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	b := r.fresh()
	r.open(b, s.url+"/one")
	r.eval(b, s.url+"/one", `addEventListener("pagehide", () => localStorage.setItem("token", "rotated")); localStorage.setItem("token", "t1"); 1`)
	r.open(b, other+"/two")
	r.eval(b, other+"/two", `localStorage.setItem("kept", "k1"); 1`)
	await(t, "a flush", func() bool { return b.closing().flush(within(t)) })
	if on := r.inventory(b.dir).LocalStorage; len(on.Areas) != 2 || on.Truncated {
		t.Fatalf("after a flush the disk has %+v", on)
	}
	if err := b.tabs.close(within(t), r.page(b, other+"/two")); err != nil {
		t.Fatal(err)
	}
	r.eval(b, s.url+"/one", `localStorage.setItem("token", "t2"); 1`)
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if doc.Datadir, err = b.Close(within(t)); err != nil || doc.Datadir != state.DatadirClean {
		t.Fatalf("%s, %v", doc.Datadir, err)
	}
	whole := r.inventory(b.dir).LocalStorage
	if got := whole.Unwritten(doc.Local, doc.CapturedAt); len(got) != 0 || whole.Truncated || len(whole.Areas) != 2 {
		t.Fatalf("with everything written: %v, %t, %+v", got, whole.Truncated, whole.Areas)
	}
	r.harm(b.dir, localstorage.Folder+"/0*.log", func(b []byte) []byte { return b[:len(b)-5] })
	cut := r.inventory(b.dir).LocalStorage
	doc.Unwritten = cut.Unwritten(doc.Local, doc.CapturedAt)
	if diff := cmp.Diff([]string{s.url + "/"}, doc.Unwritten); diff != "" || !cut.Truncated {
		t.Fatalf("cut off: %t (-want +got):\n%s", cut.Truncated, diff)
	}
	b, lines := r.restored(b.dir, doc, Options{})
	if got := line(lines, state.ComponentLocalStorage, s.url+"/"); got.Restored != 1 || got.Reason.Code != report.FromDocument {
		t.Errorf("%+v", got)
	}
	hidden, err := capture.OpenHiddenReader(within(t), b.driver)
	if err != nil {
		t.Fatal(err)
	}
	defer hidden.Close(t.Context())
	for origin, value := range map[string]string{s.url + "/": "t2", other + "/": "k1"} {
		if is, err := hidden.Local(within(t), origin); err != nil || len(is.Items) != 1 || is.Items[0].Value != value {
			t.Errorf("%s: %+v, %v", origin, is, err)
		}
	}
}

// sessionStorage that Chrome was writing when it ended is restored from the capture, over
// what an older write left. Other origins that the tab visited keep their data. Lost data
// that is not restored is not blamed on the site.
func TestSessionStorageThatDidNotReachTheDisk(t *testing.T) {
	r := newRig(t)
	s := newSite(t, nil)
	url, other := s.url+"/one", strings.Replace(s.url, "127.0.0.1", "localhost", 1)
	b := r.fresh()
	r.open(b, other+"/two")
	r.eval(b, other+"/two", `sessionStorage.setItem("kept", "k1"); 1`)
	r.open(b, url)
	r.eval(b, url, `sessionStorage.setItem("first", "1"); addEventListener("pagehide", () => sessionStorage.setItem("first", "2")); 1`)
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if doc.Datadir, err = b.Close(within(t)); err != nil || doc.Datadir != state.DatadirClean {
		t.Fatalf("%s, %v", doc.Datadir, err)
	}
	if on := r.inventory(b.dir).SessionStorage; len(on.Unstored(doc.Tabs)) != 0 || on.Truncated {
		t.Fatalf("with everything written: %+v", on)
	}
	for name, test := range map[string]struct {
		harm func(*Dir)
		read state.Area // in addition to the existing areas
		line state.Component
		by   string
		want string
	}{
		"cut off": {func(d *Dir) { r.harm(d, "Session Storage/0*.log", func(b []byte) []byte { return b[:len(b)-5] }) },
			state.Area{}, state.Component{Saved: 1, Restored: 1, Reason: report.FromDocument.Reason()}, "", "first,1"},
		"cut off, with an older write": {func(d *Dir) { r.harm(d, "Session Storage/0*.log", func(b []byte) []byte { return append(b, 1, 2, 3) }) },
			state.Area{}, state.Component{Saved: 1, Restored: 1, Reason: report.FromDocument.Reason()}, "", "first,1"},
		"not begun": {func(*Dir) {}, state.Area{Items: []state.Item{{Key: "second", Value: "2"}}},
			state.Component{Saved: 2, Restored: 1, Dropped: 1, Reason: report.NotInProfile.Reason()}, state.ByRestore, "first,2"},
	} {
		d, doc := r.copyOf(b.dir), doc
		test.harm(d)
		doc.Tabs = slices.Clone(doc.Tabs)
		for i, tab := range doc.Tabs {
			if tab.URL == url {
				doc.Tabs[i].Session = []state.Area{{StorageKey: s.url + "/", Items: slices.Concat(tab.Session[0].Items, test.read.Items)}}
			}
		}
		again, lines := r.restored(d, doc, Options{RestoreTabs: true})
		test.line.Name, test.line.Origin = state.ComponentSessionStorage, s.url+"/"
		if diff := cmp.Diff(test.line, line(lines, state.ComponentSessionStorage, s.url+"/")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		v, err := again.Verify(within(t), doc, lines)
		if err != nil {
			t.Fatal(err)
		}
		by := ""
		for _, d := range v.Differences {
			by += d.By
		}
		if by != test.by {
			t.Errorf("%s: differences are blamed on %q: %+v", name, by, v.Differences)
		}
		if got := r.eval(again, url, `Object.entries(sessionStorage).join()`); got != test.want {
			t.Errorf("%s: the page has %s", name, got)
		}
		if got := r.eval(again, other+"/two", `Object.entries(sessionStorage).join()`); got != "kept,k1" {
			t.Errorf("%s: the other page has %s", name, got)
		}
		if err := again.Kill(within(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// A close waits for Chrome if there is much to write, or if the amount is unknown.
func TestNeedsFlush(t *testing.T) {
	area := func(n int) []state.Area {
		return []state.Area{{StorageKey: "https://a.example/", Items: []state.Item{{Key: "k", Value: strings.Repeat("v", n)}}}}
	}
	for name, test := range map[string]struct {
		doc  state.Document
		want bool
	}{
		"little": {state.Document{Local: area(flushFrom - 10), Missed: []state.Missed{{Component: state.ComponentHistory}}}, false},
		"much":   {state.Document{Local: area(flushFrom)}, true},
		"unread": {state.Document{Missed: []state.Missed{{Component: state.ComponentLocalStorage}}}, true},
	} {
		if got := needsFlush(test.doc); got != test.want {
			t.Errorf("%s: needsFlush is %t", name, got)
		}
	}
}

// Many origins of an import are all there when Chrome opens the profile. Origins that
// Chrome may spell differently are applied over CDP.
func TestManyOrigins(t *testing.T) {
	r := newRigOfEither(t)
	doc := state.Document{SchemaVersion: state.SchemaVersion, Complete: true, Datadir: state.DatadirNone}
	add := func(key string) {
		doc.Local = append(doc.Local, state.Area{StorageKey: key, Items: []state.Item{{Key: "ключ", Value: "é"}}})
	}
	for i := range 1500 {
		add(fmt.Sprintf("https://h%d.example/", i))
	}
	add("https://UPPER.example:443/")
	b, report := r.restored(r.dir(), doc, Options{})
	restored := 0
	for _, line := range report {
		restored += line.Restored
	}
	if restored != len(doc.Local) {
		t.Errorf("%d origins were restored", restored)
	}
	hidden, err := capture.OpenHiddenReader(within(t), b.driver)
	if err != nil {
		t.Fatal(err)
	}
	defer hidden.Close(t.Context())
	for _, origin := range []string{"https://h0.example/", "https://h1499.example/", "https://upper.example/"} {
		if is, err := hidden.Local(within(t), origin); err != nil || len(is.Items) != 1 || is.Items[0] != doc.Local[0].Items[0] {
			t.Errorf("%s: %+v, %v", origin, is, err)
		}
	}
}
