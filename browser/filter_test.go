package browser

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/state"
)

// keepEverywhere stores a value in every place of the origin of a page or frame.
// readEverywhere reads it back, with "-" for a missing value.
const (
	keepEverywhere = `(async value => {
  document.cookie = "kept=" + value + "; max-age=3600; SameSite=Lax";
  localStorage.setItem("kept", value); sessionStorage.setItem("kept", value);
  await new Promise((done, failed) => {
    const open = indexedDB.open("kept", 1);
    open.onupgradeneeded = () => open.result.createObjectStore("s").put(value, "k");
    open.onsuccess = () => { open.result.close(); done() }; open.onerror = failed;
  });
  await (await caches.open("kept")).put("/kept", new Response(value));
  const w = await (await (await navigator.storage.getDirectory()).getFileHandle("kept", {create: true})).createWritable();
  await w.write(value); await w.close();
  await navigator.serviceWorker.register("/sw.js"); await navigator.serviceWorker.ready;
  return 1;
})("%")`
	readEverywhere = `(async () => {
  const idb = await new Promise(done => {
    const open = indexedDB.open("kept", 1);
    open.onupgradeneeded = () => open.transaction.abort(); open.onerror = () => done("-");
    open.onsuccess = () => { const get = open.result.transaction("s").objectStore("s").get("k"); get.onsuccess = () => { open.result.close(); done(get.result) } };
  });
  const cached = await (await caches.open("kept")).match("/kept");
  let file = "-";
  try { file = await (await (await (await navigator.storage.getDirectory()).getFileHandle("kept")).getFile()).text() } catch (none) {}
  return [(document.cookie.match(/kept=([^;]*)/) || [0, "-"])[1], localStorage.getItem("kept") || "-", sessionStorage.getItem("kept") || "-", idb,
    cached ? await cached.text() : "-", file, (await navigator.serviceWorker.getRegistrations()).length].join(" ");
})()`
)

// Data that a selection excludes is removed completely: no page finds it, no tab shows
// it, no file of the profile contains it. Selected data is complete.
func TestFilter(t *testing.T) {
	r := newRig(t)
	f := newFramed(t)
	const worker = `addEventListener("fetch", e => 0)`
	f.page.pages["/sw.js"], f.third.pages["/sw.js"] = worker, worker
	b := r.fresh()
	r.open(b, f.page.url+"/before")
	if _, err := b.Navigate(within(t), f.url); err != nil {
		t.Fatal(err)
	}
	other := f.other() + "/alone"
	r.open(b, other)
	r.eval(b, f.url, strings.ReplaceAll(keepEverywhere, "%", "valueofpage"))
	r.evalFrame(b, f.inner, strings.ReplaceAll(keepEverywhere, "%", "valueofframe"))
	r.eval(b, other, strings.ReplaceAll(keepEverywhere, "%", "valueofother"))
	doc, err := b.Capture(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if doc.Datadir, err = b.Close(within(t)); err != nil || doc.Datadir != state.DatadirClean {
		t.Fatalf("%s, %v", doc.Datadir, err)
	}
	for name, test := range map[string]struct {
		selection         state.Selection
		page, other, tabs string
		gone, kept        []string
	}{
		"include": {state.Selection{Include: []string{f.page.url}}, "valueofpage valueofpage valueofpage valueofpage valueofpage valueofpage 1",
			"- - - - - - 0", f.url, []string{"valueofframe", "valueofother"}, []string{"valueofpage"}},
		"exclude": {state.Selection{Exclude: []string{"127.0.0.1"}}, "- - - - - - 0",
			"valueofother valueofother valueofother valueofother valueofother valueofother 1", other, []string{"valueofframe", "valueofpage"}, []string{"valueofother"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &rig{Starter: r.Starter, t: t, dirs: r.dirs + len(name)*10 + int(name[0])}
			dir := r.copied(b)
			for _, value := range append(test.gone, test.kept...) {
				if !strings.Contains(everything(t, dir.Profile()), value) {
					t.Fatalf("%s was in no file before the filter", value)
				}
			}
			selected, left := test.selection.Document(doc)
			lost, err := Filter(within(t), dir.Profile(), test.selection)
			if err != nil || len(lost) != 0 {
				t.Fatalf("%+v, %v", lost, err)
			}
			bytes := everything(t, dir.Profile())
			for _, value := range test.gone {
				if strings.Contains(bytes, value) {
					t.Errorf("%s is in a file", value)
				}
			}
			for _, value := range test.kept {
				if !strings.Contains(bytes, value) {
					t.Errorf("%s is in no file", value)
				}
			}
			p, err := inspect.Read(within(t), filepath.Join(dir.Profile(), "Default"))
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range p.Inventory {
				if h.Damage != "" || h.Uncounted != "" {
					t.Errorf("%+v", h)
				}
			}
			if len(left) == 0 {
				t.Error("the report lists nothing as left out")
			}
			b, report := r.restored(dir, selected, Options{RestoreTabs: true})
			r.eval(b, test.tabs, "1") // a restore does not wait for the sites
			pages, err := b.Pages(within(t))
			if err != nil || len(pages) != 1 || pages[0].URL != test.tabs {
				t.Errorf("tabs: %+v, %v", pages, err)
			}
			if n := line(report, state.ComponentTabs, ""); n.Saved != 1 || n.Restored != 1 {
				t.Errorf("%+v", n)
			}
			for url, want := range map[string]string{f.url: test.page, other: test.other} {
				if url != test.tabs {
					r.open(b, url)
				}
				if got := r.eval(b, url, readEverywhere); got != want {
					t.Errorf("%s holds %q, want %q", url, got, want)
				}
			}
			if got := r.evalFrame(b, f.inner, readEverywhere); strings.Trim(got, "- 0") != "" {
				t.Errorf("the frame holds %q", got)
			}
		})
	}
}

// everything returns the bytes of all files below a folder.
func everything(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		body, err := os.ReadFile(path)
		all.Write(body)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all.String()
}
