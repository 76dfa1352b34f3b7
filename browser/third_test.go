package browser

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser/apply"
	"github.com/stasisd/stasis/state"
)

// framed is a page of one site with a frame of another site, which contains a frame of
// the first site. Each records what its first script finds.
type framed struct {
	page, third       *site
	url, inner, again string
}

func newFramed(t *testing.T) framed {
	f := framed{page: newSite(t, map[string]string{"/again": seen}), third: newSite(t, map[string]string{})}
	other := strings.Replace(f.third.url, "127.0.0.1", "localhost", 1) // another site than that of the page
	f.url, f.inner, f.again = f.page.url+"/page", other+"/inner", f.page.url+"/again"
	f.page.pages["/page"] = seen + `<iframe src="` + f.inner + `"></iframe>`
	f.third.pages["/inner"] = seen + `<iframe src="` + f.again + `"></iframe>`
	return f
}

func (f framed) requests() int { return len(f.page.requests()) + len(f.third.requests()) }

func (f framed) other() string { return strings.TrimSuffix(f.inner, "/inner") }

// Storage of frames below another site is written under its own key, without a request
// and without the frame's service worker. Storage without such a key is reported.
func TestWriteBelowAnotherSite(t *testing.T) {
	r := newRig(t)
	f := newFramed(t)
	f.third.pages["/sw.js"] = `addEventListener("fetch", e => e.respondWith(fetch("/leak").then(() => fetch(e.request))));
		addEventListener("install", () => skipWaiting()); addEventListener("activate", e => e.waitUntil(clients.claim()))`
	b := r.fresh()
	r.open(b, f.url)
	r.evalFrame(b, f.inner, `new Promise((controlled, failed) => {
		navigator.serviceWorker.oncontrollerchange = () => controlled(1);
		navigator.serviceWorker.register("/sw.js").catch(failed);
	})`)
	r.evalFrame(b, f.inner, `fetch("/inner").then(() => 1)`)
	if n := strings.Count(strings.Join(f.third.requests(), ","), "/leak"); n == 0 {
		t.Fatal("the frame's worker does not answer")
	}
	area := func(key string) state.Area {
		return state.Area{StorageKey: key, Items: []state.Item{{Key: "token", Value: key}}}
	}
	doc := state.Document{Local: []state.Area{area(f.page.url + "/"), area(f.page.url + "/^31"), area(f.other() + "/"),
		area(f.other() + "/^0http://127.0.0.1"), area(f.other() + "/^0https://top.example"), area(f.other() + "/^11^22")}}
	before := f.requests()
	report, err := apply.All(within(t), b.driver, doc, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if n := f.requests() - before; n != 0 {
		t.Errorf("the sites got %d requests", n)
	}
	for i, a := range doc.Local {
		got := line(report, state.ComponentLocalStorage, a.StorageKey)
		if named := i < len(doc.Local)-1; got.Saved != 1 || (got.Restored == 1) != named || (got.Reason.Code == "") != named {
			t.Errorf("%+v", got)
		}
	}
	for key, got := range map[string]string{
		f.page.url + "/":                  r.eval(b, f.url, `localStorage.getItem("token")`),
		f.other() + "/^0http://127.0.0.1": r.evalFrame(b, f.inner, `localStorage.getItem("token")`),
		f.page.url + "/^31":               r.evalFrame(b, f.again, `localStorage.getItem("token")`),
	} {
		if got != key {
			t.Errorf("%s holds %s", key, got)
		}
	}
}

// In a restore of a live copy, the captured state of frames below another site overrides
// the files too. It is there before their first script, whether Chrome or the daemon
// restores the tab.
func TestRestoreLiveFrames(t *testing.T) {
	for name, written := range map[string]bool{"from session files": true, "reopened": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			f := newFramed(t)
			b := r.fresh()
			if written {
				r.open(b, f.page.url+"/before")
				if _, err := b.Navigate(within(t), f.url); err != nil {
					t.Fatal(err)
				}
				r.eval(b, f.url, `history.pushState(1, "", "#deep"); 1`)
				f.url += "#deep"
				r.eval(b, f.url, `document.body.style.height = "9000px"; scrollTo(0, 700); 1`)
				r.written(b, f.url)
			} else {
				r.open(b, f.url)
			}
			const set = `localStorage.setItem("token", "l of %"); sessionStorage.setItem("step", "s of %"); 1`
			r.eval(b, f.url, strings.ReplaceAll(set, "%", "page")+`; window.name = "first"; 1`)
			r.evalFrame(b, f.inner, strings.ReplaceAll(set, "%", "inner"))
			r.evalFrame(b, f.again, strings.ReplaceAll(set, "%", "again"))
			doc, dir := r.crashed(b)
			before := f.requests()
			b, report := r.restored(dir, doc, Options{RestoreTabs: true})
			for of, got := range map[string]string{"page": r.eval(b, f.url, "window.seen"),
				"inner": r.evalFrame(b, f.inner, "window.seen"), "again": r.evalFrame(b, f.again, "window.seen")} {
				want := "l of " + of + "|s of " + of + "|"
				if of == "page" {
					want += "first"
				}
				if got != want {
					t.Errorf("the first script of %s saw %s, want %s", of, got, want)
				}
			}
			if n := f.requests() - before; n != 3 {
				t.Errorf("the sites got %d requests for a page and two frames", n)
			}
			for _, c := range report {
				if c.Dropped != 0 && c.Name != state.ComponentHistory {
					t.Errorf("%+v", c)
				}
			}
			found, err := b.Verify(within(t), doc, report)
			if err != nil || len(found.Differences) != 0 {
				t.Errorf("verification: %+v, %v", found, err)
			}
			if got := line(report, state.ComponentHistory, ""); written && (got.Saved != 2 || got.Restored != 2) {
				t.Errorf("%+v", got)
			}
			if written {
				r.eval(b, f.url, `history.go(-2); 1`)
				r.eval(b, f.page.url+"/before", `1`)
			}
			// What a frame removes stays removed.
			if !written {
				r.evalFrame(b, f.inner, `sessionStorage.clear(); location.reload(); 1`)
				await(t, "the frame is reloaded", func() bool { return r.evalFrame(b, f.inner, "window.seen") == "l of inner||" })
			}
		})
	}
}

// If tabs have changed since Chrome wrote its session files, the document's tabs are
// restored. None of the session files' tabs runs, and the site gets no request from them.
func TestRestoreLiveAfterChange(t *testing.T) {
	r := newRig(t)
	s := newSite(t, nil)
	b := r.fresh()
	r.open(b, s.url+"/old")
	r.open(b, s.url+"/kept")
	r.written(b, s.url+"/old")
	r.written(b, s.url+"/kept")
	doc, dir := r.crashed(b)
	doc.Tabs = append(slices.DeleteFunc(doc.Tabs, func(tab state.Tab) bool { return tab.URL == s.url+"/old" }), state.Tab{URL: s.url + "/new"})
	before := len(s.requests())
	b, report := r.restored(dir, doc, Options{RestoreTabs: true})
	for _, path := range []string{"/kept", "/new"} {
		r.eval(b, s.url+path, "1")
	}
	asked := s.requests()[before:]
	slices.Sort(asked)
	if diff := cmp.Diff([]string{"/kept ", "/new "}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if pages, err := b.Pages(within(t)); err != nil || len(pages) != 2 {
		t.Errorf("%+v, %v", pages, err)
	}
	if got := line(report, state.ComponentTabs, ""); got.Saved != 2 || got.Restored != 2 {
		t.Errorf("%+v", got)
	}
}
