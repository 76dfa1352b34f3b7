package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/target"
	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// keeps writes to every storage that a site has in a profile. The shell opens some of it
// at its start and the rest on demand. kept reads it back.
const (
	keeps = `(async () => {
		localStorage.mark = "l"; document.cookie = "mark=c; max-age=3600";
		const db = await new Promise((done, failed) => { const o = indexedDB.open("mark", 1);
			o.onupgradeneeded = () => o.result.createObjectStore("s"); o.onsuccess = () => done(o.result); o.onerror = failed; });
		await new Promise((done) => { const t = db.transaction("s", "readwrite"); t.objectStore("s").put("i", "k"); t.oncomplete = done; });
		db.close();
		await (await caches.open("mark")).put("/x", new Response("r"));
		await (await (await navigator.storage.getDirectory()).getFileHandle("mark", { create: true })).createWritable().then((w) => w.close());
		await navigator.serviceWorker.register("/sw.js");
		await navigator.serviceWorker.ready;
		return 1;
	})()`
	kept = `(async () => {
		const db = await new Promise((done, failed) => { const o = indexedDB.open("mark"); o.onsuccess = () => done(o.result); o.onerror = failed; });
		const i = await new Promise((done) => { const r = db.transaction("s").objectStore("s").get("k"); r.onsuccess = () => done(r.result); });
		db.close();
		const files = []; for await (const name of (await navigator.storage.getDirectory()).keys()) files.push(name);
		return [localStorage.mark, document.cookie, i, await (await caches.match("/x")).text(), files.join(),
			(await navigator.serviceWorker.getRegistrations()).length, await (await fetch("/from-worker")).text()].join("|");
	})()`
	keptAllOfIt = "l|mark=c|i|r|mark|1|worker"
)

// A running shell accepts a profile as if it had started with it, including the files
// that it opens at its start. What it has written by its end is complete, for the next
// shell, which starts with the profile, and for full Chrome. Data that it does not use is
// preserved.
func TestShellTakesAProfile(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newSite(t, map[string]string{
		"/sw.js": `self.onfetch = (e) => { if (e.request.url.endsWith("/from-worker")) e.respondWith(new Response("worker")); };
			self.onactivate = (e) => e.waitUntil(clients.claim());`})
	url := s.url + "/page"
	b, err := r.spareOf(EngineShell).Fresh(within(t), Options{Engine: EngineShell})
	if err != nil {
		t.Fatal(err)
	}
	r.open(b, url)
	r.eval(b, url, keeps)
	doc := r.save(b)
	untouched := filepath.Join(b.dir.Profile(), "Default", "TransportSecurity")
	if err := os.WriteFile(untouched, []byte(`{"sts":[],"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		o := Options{RestoreTabs: true, Engine: EngineShell}
		var report []state.Component
		switch i {
		case 0:
			b, report = r.restoredInSpare(b, doc, o)
		case 2:
			o.Engine = EngineChrome
			fallthrough
		default:
			b, report = r.restored(b.dir, doc, o)
		}
		if got := r.eval(b, url, kept); got != keptAllOfIt {
			t.Errorf("%s, round %d: %s", o.Engine, i, got)
		}
		found, err := b.Verify(within(t), doc, report)
		if err != nil || len(found.Differences) != 0 {
			t.Errorf("round %d: %+v, %v", i, found, err)
		}
		r.eval(b, url, `localStorage.mark += ""; 1`)
		doc = r.save(b)
		if o.Engine == EngineChrome {
			continue // full Chrome has a separate list
		}
		if body, err := os.ReadFile(filepath.Join(b.dir.Profile(), "Default", "TransportSecurity")); err != nil || !strings.Contains(string(body), `"sts"`) {
			t.Errorf("HSTS after round %d: %s, %v", i, body, err)
		}
	}
}

// If the shell has already opened a file of the profile that is loaded, the restore fails
// with an error. Otherwise one of the two files would be lost.
func TestShellWithOpenFileRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.spareOf(EngineShell)
	for _, dir := range []*Dir{p.Dir(), p.Dir().Waiting()} {
		profile := filepath.Join(dir.Profile(), "Default")
		if err := os.MkdirAll(profile, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(profile, "Later"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := p.Restored(within(t), state.Document{Complete: true, Datadir: state.DatadirClean}, Options{Engine: EngineShell})
	if !fault.Is(err, fault.BrowserFailed) {
		t.Errorf("%v", err)
	}
	<-p.Done()
}

// Tabs are saved in the order in which they were opened, with the newest in front. Chrome
// lists them in any order.
func TestShellSavesTabsInOrder(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), newSite(t, nil)
	b, err := r.Fresh(within(t), r.dir(), Options{Engine: EngineShell})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	want := []string{blankURL}
	for i := range 5 {
		url := fmt.Sprintf("%s/%d", s.url, i)
		if _, err := cdp.Call(within(t), b.driver, target.CreateTarget, target.CreateTargetParams{URL: url}); err != nil {
			t.Fatal(err)
		}
		r.eval(b, url, "1") // wait until it has loaded
		want = append(want, url)
	}
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, tab := range doc.Tabs {
		got = append(got, tab.URL)
		if newest := i == len(doc.Tabs)-1; tab.Active != newest {
			t.Errorf("%s: Active is %t", tab.URL, tab.Active)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-opened +saved):\n%s", diff)
	}
}
