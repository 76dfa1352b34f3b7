package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/storage"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/profile/inspect"
	"github.com/stasisd/stasis/state"
)

// newKinds is a site that answers every request, with a service worker at /sw.js.
func newKinds(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/sw.js" {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = fmt.Fprint(w, "addEventListener('message', () => {})")
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<!doctype html><title>kinds</title>")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// fill makes a site store data of every kind that a page can store.
const fill = `(async () => {
	document.cookie = "kept=1; max-age=3600"; document.cookie = "session=1";
	for (const k of ["a", "ключ", "gone"]) localStorage.setItem(k, k + " 😀");
	localStorage.removeItem("gone");
	const open = (name, from = indexedDB) => new Promise((ok, no) => {
		const q = from.open(name, 2);
		q.onupgradeneeded = () => { q.result.createObjectStore("s", {autoIncrement: true}).createIndex("i", "v"); q.result.createObjectStore("t"); };
		q.onsuccess = () => ok(q.result); q.onerror = () => no(q.error);
	});
	const write = (db, use) => new Promise((ok, no) => {
		const tx = db.transaction(["s", "t"], "readwrite", {durability: "strict"});
		use(tx.objectStore("s"), tx.objectStore("t")); tx.oncomplete = ok; tx.onabort = () => no(tx.error);
	});
	for (const name of ["one", "two"]) {
		const db = await open(name);
		await write(db, (s, t) => { for (let i = 0; i < 40; i++) s.put({v: i, long: "x".repeat(500)}); t.put(new Blob(["b"]), "blob"); });
		await write(db, (s, t) => { s.delete(1); s.put({v: -1}, 2); });
		db.close();
	}
	(await open("gone")).close();
	await new Promise((ok) => indexedDB.deleteDatabase("gone").onsuccess = ok);
	for (const [name, n] of [["c1", 5], ["c2", 2], ["gone", 1]]) {
		const cache = await caches.open(name);
		for (let i = 0; i < n; i++) await cache.put("/r" + i, new Response("body " + i));
	}
	await (await caches.open("c1")).delete("/r0");
	await caches.delete("gone");
	const file = async (dir, name) => {
		const w = await (await dir.getFileHandle(name, {create: true})).createWritable();
		await w.write("in " + name); await w.close();
	};
	const root = await navigator.storage.getDirectory();
	await file(root, "f"); await file(root, "gone"); await root.removeEntry("gone");
	await file(await root.getDirectoryHandle("d", {create: true}), "g");
	const bucket = await navigator.storageBuckets.open("inbox");
	await (await bucket.caches.open("b")).put("/q", new Response("q"));
	const db = await open("in bucket", bucket.indexedDB);
	await write(db, (s) => { s.put({v: 1}); });
	db.close();
	await navigator.serviceWorker.register("/sw.js"); await navigator.serviceWorker.ready;
	return "filled";
})()`

// countAll counts with the site's own scripts, by component.
const countAll = `(async () => {
	const idb = async (from) => {
		let dbs = 0, records = 0;
		for (const {name} of await from.databases()) {
			const db = await new Promise((ok, no) => { const q = from.open(name); q.onsuccess = () => ok(q.result); q.onerror = () => no(q.error); });
			dbs++;
			for (const s of db.objectStoreNames)
				records += await new Promise((ok, no) => { const q = db.transaction(s).objectStore(s).count(); q.onsuccess = () => ok(q.result); q.onerror = () => no(q.error); });
			db.close();
		}
		return [dbs, records];
	};
	const cached = async (from) => { let n = 0; for (const c of await from.keys()) n += (await (await from.open(c)).keys()).length; return n; };
	const files = async (dir) => { let n = 0; for await (const e of dir.values()) n += e.kind === "file" ? 1 : await files(e); return n; };
	const n = {cookies: document.cookie.split("; ").filter(Boolean).length, local_storage: localStorage.length, storage_buckets: 0};
	[n.indexed_db, n.indexed_db_records] = await idb(indexedDB);
	n.cache_storage = await cached(caches);
	n.file_system = await files(await navigator.storage.getDirectory());
	n.service_workers = (await navigator.serviceWorker.getRegistrations()).length;
	for (const name of await navigator.storageBuckets.keys()) {
		const b = await navigator.storageBuckets.open(name);
		const [dbs, records] = await idb(b.indexedDB);
		n.storage_buckets++; n.indexed_db += dbs; n.indexed_db_records += records; n.cache_storage += await cached(b.caches);
	}
	return Object.entries(n).map(([k, v]) => k + "=" + v).sort().join(" ");
})()`

// formatCounts formats an inventory's counts of a site as countAll does. Cookies are counted by
// domain, the others by origin.
func formatCounts(inv state.Inventory, origin, domain string) string {
	var parts []string
	for _, h := range inv {
		if h.Origin == origin || h.Origin == domain {
			parts = append(parts, fmt.Sprintf("%s=%d", h.Component, h.Items))
		}
	}
	return strings.Join(parts, " ")
}

func (r *rig) inventory(d *Dir) inspect.Profile {
	r.t.Helper()
	p, err := inspect.Read(within(r.t), profile.Path(d.Profile()))
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// The counts on disk equal those of the site's own scripts, both after Chrome's first run
// (logs) and after it has read the files once (tables).
func TestInventoryCountsAsTheSiteDoes(t *testing.T) {
	r := newRig(t)
	one := newKinds(t)
	two := strings.Replace(newKinds(t), "127.0.0.1", "localhost", 1)
	b := r.fresh()
	counts := map[string]string{}
	yes := true
	if _, err := cdp.Call(within(t), b.driver, storage.SetCookies, storage.SetCookiesParams{Cookies: []*network.CookieParam{
		{Name: "chips", Value: "ü", Domain: "c.example", Path: "/p", Secure: true, SameSite: "None", Priority: "High", Expires: 2e9,
			PartitionKey: &network.CookiePartitionKey{TopLevelSite: "https://t.example", HasCrossSiteAncestor: yes}},
		{Name: "__Host-h", Value: "", URL: "https://h.example/", Secure: true, HTTPOnly: true, SameSite: "Strict", Priority: "Low"},
	}}); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{one, two} {
		r.open(b, url+"/")
		if got := r.eval(b, url+"/", fill); got != "filled" {
			t.Fatal(got)
		}
		counts[url] = r.eval(b, url+"/", countAll)
	}
	want := "cache_storage=7 cookies=2 file_system=2 indexed_db=3 indexed_db_records=81 local_storage=2 service_workers=1 storage_buckets=1"
	for round, doc := range []state.Document{{}, {SchemaVersion: state.SchemaVersion, Complete: true, Datadir: state.DatadirClean}} {
		if round > 0 {
			b, _ = r.restored(b.dir, doc, Options{})
			for _, url := range []string{one, two} {
				if _, err := b.Navigate(within(t), url+"/"); err != nil {
					t.Fatal(err)
				}
				counts[url] = r.eval(b, url+"/", countAll)
			}
		}
		jar, err := capture.Cookies(within(t), b.driver)
		if err != nil {
			t.Fatal(err)
		}
		if as, err := b.Close(within(t)); err != nil || as != state.DatadirClean {
			t.Fatalf("%s, %v", as, err)
		}
		p := r.inventory(b.dir)
		for url, domain := range map[string]string{one: "127.0.0.1", two: "localhost"} {
			if counts[url] != want {
				t.Errorf("round %d: the site counts %s, want %s", round, counts[url], want)
			}
			if got := formatCounts(p.Inventory, url+"/", domain); got != want {
				t.Errorf("round %d: the disk has %s, want %s", round, got, want)
			}
		}
		items := []state.Item{{Key: "a", Value: "a 😀"}, {Key: "ключ", Value: "ключ 😀"}}
		areas := []state.Area{{StorageKey: one + "/", Items: items}, {StorageKey: two + "/", Items: items}}
		if diff := cmp.Diff(areas, p.LocalStorage.Areas); diff != "" {
			t.Errorf("round %d: localStorage (-want +got):\n%s", round, diff)
		}
		if diff := cmp.Diff(jar, p.Cookies, cmpopts.EquateApprox(0, 1e-3)); diff != "" {
			t.Errorf("round %d: the jar (-CDP +disk):\n%s", round, diff)
		}
		if h, ok := p.Inventory.Of(state.ComponentVisited, ""); !ok || h.Items != 2 {
			t.Errorf("round %d: history: %+v", round, h)
		}
		for _, h := range p.Inventory {
			if h.Damage+h.Uncounted != "" {
				t.Errorf("round %d: %+v", round, h)
			}
		}
	}
}
