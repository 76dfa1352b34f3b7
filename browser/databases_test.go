package browser

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/portable"
	"github.com/stasisd/stasis/state/report"
)

// makeDatabases fills an origin with every value that both IndexedDB and the JSON format
// can represent, and with two that JSON cannot.
const makeDatabases = `(async () => {
  const open = (name, version, upgrade) => new Promise((done, failed) => {
    const r = indexedDB.open(name, version);
    r.onupgradeneeded = () => upgrade(r.result);
    r.onsuccess = () => done(r.result);
    r.onerror = () => failed(r.error);
  });
  const db = await open("shop", 7, db => {
    const inline = db.createObjectStore("inline", {keyPath: "id", autoIncrement: true});
    inline.createIndex("by tag", "tags", {multiEntry: true});
    inline.createIndex("by both", ["a", "b"], {unique: true});
    db.createObjectStore("pair", {keyPath: ["a", "b"]});
    db.createObjectStore("outline");
    db.createObjectStore("empty", {keyPath: ""});
  });
  (await open("no stores", 1, () => {})).close();
  const t = db.transaction(["inline", "pair", "outline"], "readwrite");
  t.objectStore("inline").add({tags: ["x", "y"], a: 1, b: 2, __proto__x: null});
  t.objectStore("inline").add({tags: [], a: 1, b: 3, when: new Date(86400000)});
  t.objectStore("pair").add({a: "k", b: new Date(0)});
  const out = t.objectStore("outline");
  const round = {self: null}; round.self = round;
  const values = {plain: {a: [1, null, "ü\u2028", true]}, undef: undefined, nan: NaN, inf: -Infinity, zero: -0, big: 12345678901234567890n,
    map: new Map([[{k: 1}, new Set([1, "2"])]]), re: /a\/b/gi, bytes: new Uint8Array([0, 255]), floats: new Float64Array([1.5, -0]),
    buffer: new Uint8Array([1, 2]).buffer, holes: [1, undefined, 3], round, error: Object.assign(new Error("m"), {stack: "s"})};
  for (const [k, v] of Object.entries(values)) out.put(v, k);
  out.put("date key", new Date(5)); out.put("array key", [1, "a", new Date(6)]); out.put("binary key", new Uint8Array([9]).buffer);
  out.put(new Blob(["b"]), "blob");
  out.put({deep: [await crypto.subtle.generateKey({name: "AES-GCM", length: 128}, false, ["encrypt"])]}, "secret");
  await new Promise(done => { t.oncomplete = done; });
  db.close();
  localStorage.setItem("l", "v");
  return "made";
})()`

// readDatabases lists the databases, independently of the code under test.
const readDatabases = `(async () => {
  const db = await new Promise((done, failed) => {
    const r = indexedDB.open("shop");
    r.onsuccess = () => done(r.result);
    r.onerror = () => failed(r.error);
  });
  const got = r => new Promise(done => { r.onsuccess = () => done(r.result); });
  const word = v => v instanceof Map ? "map " + [...v].map(([k, v]) => word(k) + word(v)) : v instanceof Set ? "set " + [...v].map(word)
    : v instanceof ArrayBuffer ? "buffer " + new Uint8Array(v) : ArrayBuffer.isView(v) ? v.constructor.name + " " + [...v].map(word)
    : v instanceof Error ? "error " + v.name + v.message + v.stack : v instanceof Date || v instanceof RegExp ? v.constructor.name + " " + String(v)
    : Array.isArray(v) ? "[" + Array.from(v, word) + "]" : v && typeof v === "object" ? "{" + Object.entries(v).map(([k, x]) => k + ":" + (x === v ? "itself" : word(x))) + "}"
    : Object.is(v, -0) ? "-0" : typeof v + " " + String(v);
  const out = [db.version];
  for (const name of db.objectStoreNames) {
    const s = db.transaction(name).objectStore(name);
    out.push(name, JSON.stringify([s.keyPath, s.autoIncrement, ...[...s.indexNames].map(n => s.index(n)).map(i => [i.name, i.keyPath, i.unique, i.multiEntry])]));
    const keys = await got(s.getAllKeys());
    for (const k of keys) out.push(word(k) + " = " + word(await got(s.get(k))));
  }
  out.push("by tag " + (await got(db.transaction("inline").objectStore("inline").index("by tag").getAllKeys("y"))));
  out.push((await indexedDB.databases()).map(d => d.name + d.version).sort().join());
  db.close();
  return out.join("\n");
})()`

// Databases that are read, written as a storageState, read again and applied to an empty
// Chrome are unchanged. Values without a JSON form are reported. The site gets no
// request.
func TestDatabasesRoundTrip(t *testing.T) {
	r := newRigOfEither(t)
	s := newSite(t, nil)
	b := r.fresh()
	r.open(b, s.url+"/make")
	if got := r.eval(b, s.url+"/make", makeDatabases); got != "made" {
		t.Fatal(got)
	}
	got, err := b.Storage(within(t), []string{s.url, "https://nobody.example"})
	if err != nil {
		t.Fatal(err)
	}
	const reason = "a record contains a value that JSON cannot express: a Blob, a file or a CryptoKey"
	lost := state.Missed{Component: state.ComponentIndexedDBRecords, Origin: s.url + "/", Reason: reason}
	if diff := cmp.Diff([]state.Missed{lost, lost}, got.Missed); diff != "" {
		t.Errorf("missed:\n%s", diff)
	}
	if len(got.Local) != 1 || got.Local[0].Items[0].Value != "v" || len(got.IndexedDB) != 1 {
		t.Fatalf("read: %+v", got)
	}
	raw, _ := portable.Playwright(state.Document{Local: got.Local, IndexedDB: got.IndexedDB})
	doc, refused, err := portable.ReadPlaywright(raw)
	if err != nil || len(refused) > 0 {
		t.Fatalf("our own storageState: %+v, %v", refused, err)
	}

	again, report := r.restored(r.dir(), doc, Options{Engine: EngineShell})
	want := []state.Component{
		{Name: state.ComponentIndexedDB, Origin: s.url + "/", Saved: 2, Restored: 2},
		{Name: state.ComponentIndexedDBRecords, Origin: s.url + "/", Saved: 20, Restored: 20},
	}
	var lines []state.Component
	for _, line := range report {
		if line.Name == state.ComponentIndexedDB || line.Name == state.ComponentIndexedDBRecords {
			lines = append(lines, line)
		}
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("report:\n%s", diff)
	}
	if asked := s.requests(); len(asked) != 1 {
		t.Errorf("the site got requests: %q", asked)
	}
	without := `(async () => { const db = await new Promise(d => { const r = indexedDB.open("shop"); r.onsuccess = () => d(r.result); });
		const t = db.transaction("outline", "readwrite"); t.objectStore("outline").delete("blob"); t.objectStore("outline").delete("secret");
		await new Promise(d => { t.oncomplete = d; }); db.close(); return "done"; })()`
	r.eval(b, s.url+"/make", without)
	r.open(again, s.url+"/look")
	if diff := cmp.Diff(r.eval(b, s.url+"/make", readDatabases), r.eval(again, s.url+"/look", readDatabases)); diff != "" {
		t.Errorf("the content differs:\n%s", diff)
	}
}

// A database that cannot be created as described is not created at all, and the report
// says so. The others are created.
func TestInvalidDatabases(t *testing.T) {
	r := newRigOfEither(t)
	s := newSite(t, nil)
	db := func(name string, records ...string) state.Database {
		store := state.Store{Name: "s", Records: []state.Record{}, Indexes: []state.Index{}}
		for _, key := range records {
			store.Records = append(store.Records, state.Record{Key: json.RawMessage(key), Value: json.RawMessage(`1`)})
		}
		return state.Database{Name: name, Version: 1, Stores: []state.Store{store}}
	}
	b, lines := r.restored(r.dir(), state.Document{Datadir: state.DatadirNone, Complete: true, IndexedDB: []state.Databases{
		{Origin: s.url, Databases: []state.Database{db("good", `1`, `2`), db("twice", `1`, `1`), db("no key", `{}`)}},
		{Origin: "file:///etc", Databases: []state.Database{db("x", `1`)}},
	}, Local: []state.Area{{StorageKey: "file:///etc/", Items: []state.Item{{Key: "k"}}}}}, Options{})
	got := map[string]state.Component{}
	for _, line := range lines {
		got[line.Name+" "+line.Origin] = line
	}
	for _, want := range []state.Component{
		{Name: state.ComponentIndexedDB, Origin: s.url + "/", Saved: 3, Restored: 1, Dropped: 2, Reason: report.NotWritten.Reason()},
		{Name: state.ComponentIndexedDBRecords, Origin: s.url + "/", Saved: 5, Restored: 2, Dropped: 3, Reason: report.NotWritten.Reason()},
		{Name: state.ComponentIndexedDB, Origin: "file:///etc/", Saved: 1, Dropped: 1, Reason: report.NotWritten.Reason()},
		{Name: state.ComponentLocalStorage, Origin: "file:///etc/", Saved: 1, Dropped: 1, Reason: report.NotWritten.Reason()},
	} {
		if diff := cmp.Diff(want, got[want.Name+" "+want.Origin], cmpopts.IgnoreFields(report.Reason{}, "Text")); diff != "" {
			t.Errorf("%s %s:\n%s", want.Name, want.Origin, diff)
		}
	}
	r.open(b, s.url+"/look")
	if names := r.eval(b, s.url+"/look", `indexedDB.databases().then(all => all.map(d => d.name).join())`); names != "good" {
		t.Errorf("the databases are %q", names)
	}
}
