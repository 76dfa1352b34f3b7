package browser

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// keeper is an extension that stores data in every place it has, marks every page before
// its first script runs, and blocks one address.
var keeper = map[string]string{
	"manifest.json": `{"manifest_version": 3, "name": "Keeper", "version": "%s", "key": "%s",
		"permissions": ["storage", "declarativeNetRequest"], "host_permissions": ["<all_urls>"],
		"background": {"service_worker": "worker.js"},
		"content_scripts": [{"matches": ["<all_urls>"], "js": ["content.js"], "run_at": "document_start"}],
		"declarative_net_request": {"rule_resources": [{"id": "rules", "enabled": true, "path": "rules.json"}]}}`,
	"rules.json": `[{"id": 1, "action": {"type": "block"}, "condition": {"urlFilter": "/blocked"}}]`,
	"content.js": `document.documentElement.dataset.keeper = chrome.runtime.id;
		document.addEventListener('ask', async (e) => {
			const answer = await chrome.runtime.sendMessage(e.detail);
			document.dispatchEvent(new CustomEvent('answer', {detail: answer}));
		});`,
	"worker.js": `
		const events = (async () => (await chrome.storage.local.get('events')).events ?? [])();
		const note = async (what) => { const list = await events; list.push(what); await chrome.storage.local.set({events: list}); };
		chrome.runtime.onInstalled.addListener((e) => note(e.reason + ' ' + (e.previousVersion ?? '')));
		chrome.runtime.onStartup.addListener(async () => note('startup with ' + JSON.stringify(await chrome.storage.session.get())));
		const open = () => new Promise((ok, no) => {
			const r = indexedDB.open('keeper', 4);
			r.onupgradeneeded = () => r.result.createObjectStore('kept');
			r.onsuccess = () => ok(r.result); r.onerror = no;
		});
		const done = (r) => new Promise((ok, no) => { r.onsuccess = () => ok(r.result); r.onerror = no; });
		chrome.runtime.onMessage.addListener((message, sender, answer) => { (async () => {
			const db = await open();
			if (message === 'keep') {
				await chrome.storage.local.set({kept: 'local'});
				await chrome.storage.sync.set({kept: 'sync'});
				await chrome.storage.session.set({kept: 'session', list: [1, {a: null}]});
				await done(db.transaction('kept', 'readwrite').objectStore('kept').put('database', 'kept'));
				await chrome.declarativeNetRequest.updateDynamicRules({addRules: [{id: 1, action: {type: 'block'}, condition: {urlFilter: '/unwanted'}}]});
			}
			answer(JSON.stringify([(await chrome.storage.local.get()).kept, (await chrome.storage.sync.get()).kept,
				await chrome.storage.session.get(), await done(db.transaction('kept').objectStore('kept').get('kept')),
				(await events).join(','), await chrome.extension.isAllowedFileSchemeAccess()]));
			db.close();
		})(); return true; });`,
}

// installKeeper writes the keeper's files into a run directory.
func (r *rig) installKeeper(dir *Dir, version string) state.Extension {
	r.t.Helper()
	key := []byte("the keeper's key")
	sum := sha256.Sum256(key)
	e := state.Extension{SHA256: version, Name: "Keeper", Version: version, Enabled: true}
	for _, b := range sum[:16] {
		e.ID += string(rune('a'+b>>4)) + string(rune('a'+b&15))
	}
	at := ExtensionDir(dir, e.ID)
	if err := os.MkdirAll(at, 0o700); err != nil {
		r.t.Fatal(err)
	}
	for name, body := range keeper {
		if name == "manifest.json" {
			body = fmt.Sprintf(body, version, base64.StdEncoding.EncodeToString(key))
		}
		if err := os.WriteFile(filepath.Join(at, name), []byte(body), 0o600); err != nil {
			r.t.Fatal(err)
		}
	}
	return e
}

// askKeeper sends a message to the extension's worker through its script in a page.
func (r *rig) askKeeper(b *Browser, url, message string) string {
	r.t.Helper()
	return strings.ReplaceAll(r.eval(b, url, fmt.Sprintf(`new Promise((ok) => {
		document.addEventListener('answer', (e) => ok(e.detail), {once: true});
		document.dispatchEvent(new CustomEvent('ask', {detail: %q}));
	})`, message)), `\"`, `"`)
}

// keeperSite is a page that reports what it saw first, and whether a request was blocked.
func keeperSite(t *testing.T) *site {
	return newSite(t, map[string]string{"/page": `<script>
		window.first = document.documentElement.dataset.keeper;
		window.request = fetch('/blocked').then(() => 'open', () => 'blocked');
	</script>`})
}

const keptAll = `["local","sync",{"kept":"session","list":[1,{"a":null}]},"database",`

// An extension is installed before the first page. Its script runs before the page's own,
// its rules apply, it got the installed event, and it may not read files of the machine.
// After a restore elsewhere, all its data exists, its ID is the same, and it gets no
// second installed event.
func TestExtensionIsRestored(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), keeperSite(t)
	dir := r.dir()
	e := r.installKeeper(dir, "1.0")
	b, err := r.Fresh(within(t), dir, Options{RestoreTabs: true, Extensions: []state.Extension{e}})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	url := s.url + "/page"
	r.open(b, url)
	if got := r.eval(b, url, "window.first"); got != e.ID {
		t.Errorf("the page saw %q first, not the extension's mark", got)
	}
	if got := r.askKeeper(b, url, "keep"); got != keptAll+`"install ",false]` {
		t.Errorf("its data is %s", got)
	}
	if got := r.eval(b, url, "window.request"); got != "blocked" {
		t.Errorf("its rules: %s", got)
	}
	// The same Chrome is copied while it is frozen, and later after it has closed.
	for _, end := range []struct {
		name string
		do   func() (state.Datadir, error)
	}{
		{"frozen", func() (state.Datadir, error) { return state.DatadirLive, b.Freeze(within(t)) }},
		{"closed", func() (state.Datadir, error) { return b.Close(within(t)) }},
	} {
		name := end.name
		if err := b.Thaw(within(t)); err != nil {
			t.Fatal(err)
		}
		doc, err := b.Capture(within(t))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]json.RawMessage{"kept": json.RawMessage(`"session"`), "list": json.RawMessage(`[1,{"a":null}]`)}
		if got := doc.Extensions; len(got) != 1 || !got[0].Enabled || got[0].ID != e.ID || fmt.Sprint(got[0].Session) != fmt.Sprint(want) {
			t.Fatalf("%s: captured %+v", name, doc.Extensions)
		}
		if doc.Datadir, err = end.do(); err != nil {
			t.Fatal(err)
		}
		to := r.copied(b)
		if _, err := os.Stat(filepath.Join(ExtensionDir(to, e.ID), "_metadata")); err == nil {
			t.Errorf("%s: the extension's folder contains files of Chrome", name)
		}
		back, report := r.restored(to, doc, Options{RestoreTabs: true, Extensions: []state.Extension{e}})
		if got := r.eval(back, url, "window.first"); got != e.ID {
			t.Errorf("%s: the restored page saw %q first, not the extension's mark", name, got)
		}
		if got := r.askKeeper(back, url, "read"); !strings.HasPrefix(got, keptAll+`"install `) || strings.Count(got, "install") != 1 || !strings.HasSuffix(got, ",false]") {
			t.Errorf("%s: its restored data is %s", name, got)
		} else if strings.Contains(got, "startup") && !strings.Contains(got, `startup with {\\"kept`) {
			t.Errorf("%s: its worker started before its storage was written: %s", name, got)
		}
		if got := r.eval(back, url, "window.request"); got != "blocked" {
			t.Errorf("%s: its restored rules: %s", name, got)
		}
		for component, saved := range map[string]int{state.ComponentExtensions: 1, state.ComponentExtensionStorage: 2} {
			if l := line(report, component, e.Origin()); l.Saved != saved || l.Restored != saved || l.Dropped != 0 || l.Reason.Code != "" {
				t.Errorf("%s: %+v", name, l)
			}
		}
		if err := back.Kill(within(t)); err != nil {
			t.Fatal(err)
		}
	}
}

// A restore may add extensions and change the version of one. A disabled extension stays
// disabled, and one without files is reported.
func TestExtensionsOfARestore(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), keeperSite(t)
	url := s.url + "/page"
	plain := r.fresh()
	r.open(plain, url)
	doc, err := plain.Capture(within(t))
	if err == nil {
		doc.Datadir, err = plain.Close(within(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := r.copied(plain)
	e := r.installKeeper(dir, "1.0")
	b, lines := r.restored(dir, doc, Options{RestoreTabs: true, Extensions: []state.Extension{e}})
	if got := r.eval(b, url, "window.first"); got != e.ID {
		t.Errorf("the restored page saw %q first, not the new extension's mark", got)
	}
	r.askKeeper(b, url, "keep")
	await(t, "the new extension has its data", func() bool {
		return strings.HasPrefix(r.askKeeper(b, url, "read"), keptAll+`"install `)
	})
	if l := line(lines, state.ComponentExtensions, e.Origin()); l.Saved != 0 || l.Restored != 1 || l.Reason.Code != "" {
		t.Errorf("%+v", l)
	}
	if doc, err = b.Capture(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := b.Freeze(within(t)); err != nil {
		t.Fatal(err)
	}

	newer := r.copied(b)
	if err := os.RemoveAll(ExtensionDir(newer, e.ID)); err != nil {
		t.Fatal(err)
	}
	second := r.installKeeper(newer, "2.0")
	updated, lines := r.restored(newer, doc, Options{RestoreTabs: true, Extensions: []state.Extension{second}})
	if got := r.askKeeper(updated, url, "read"); !strings.HasPrefix(got, keptAll) || !strings.Contains(got, "update ") {
		t.Errorf("the other version's data is %s", got)
	}
	if l := line(lines, state.ComponentExtensions, e.Origin()); l.Restored != 1 || l.Reason.Code != report.OtherVersion {
		t.Errorf("%+v", l)
	}

	off := doc
	off.Extensions = []state.Extension{e}
	off.Extensions[0].Enabled = false
	disabled, lines := r.restored(r.copied(b), off, Options{RestoreTabs: true, Extensions: off.Extensions})
	if got := r.eval(disabled, url, "window.first"); got != "" {
		t.Errorf("a disabled extension marked the page: %q", got)
	}
	if l := line(lines, state.ComponentExtensions, e.Origin()); l.Restored != 1 || l.Reason.Code != "" {
		t.Errorf("%+v", l)
	}
	if now, err := disabled.Capture(within(t)); err != nil || len(now.Extensions) != 1 || now.Extensions[0].Enabled {
		t.Errorf("%+v %v", now.Extensions, err)
	}

	withoutVisibility := r.copied(b)
	if err := os.RemoveAll(ExtensionDir(withoutVisibility, e.ID)); err != nil {
		t.Fatal(err)
	}
	_, lines = r.restored(withoutVisibility, doc, Options{RestoreTabs: true, Extensions: doc.Extensions})
	if l := line(lines, state.ComponentExtensions, e.Origin()); l.Saved != 1 || l.Dropped != 1 || l.Reason.Code == "" {
		t.Errorf("%+v", l)
	}
}

// A selection of sites does not affect an extension and its data, as an extension is not
// a site.
func TestExtensionOfASelection(t *testing.T) {
	t.Parallel()
	r, s := newRig(t), keeperSite(t)
	dir, url := r.dir(), s.url+"/page"
	e := r.installKeeper(dir, "1.0")
	b, err := r.Fresh(within(t), dir, Options{RestoreTabs: true, Extensions: []state.Extension{e}})
	if err != nil {
		t.Fatal(err)
	}
	r.ends(b)
	r.open(b, url)
	r.askKeeper(b, url, "keep")
	const unwanted = "fetch('/unwanted').then(() => 'open', () => 'blocked')"
	if got := r.eval(b, url, unwanted); got != "blocked" {
		t.Errorf("the rule that the extension added: %s", got)
	}
	doc := r.closed(b)
	selection := state.Selection{Include: []string{s.url}}
	selected, left := selection.Document(doc)
	for _, l := range left {
		if l.Origin == e.Origin() {
			t.Errorf("%+v", l)
		}
	}
	to := r.copied(b)
	if lost, err := Filter(within(t), to.Profile(), selection); err != nil || len(lost) != 0 {
		t.Fatalf("%+v, %v", lost, err)
	}
	back, report := r.restored(to, selected, Options{RestoreTabs: true, Extensions: []state.Extension{e}})
	if got := r.askKeeper(back, url, "read"); !strings.HasPrefix(got, keptAll+`"install `) || strings.Count(got, "install") != 1 {
		t.Errorf("the extension's data is %s", got)
	}
	if got := r.eval(back, url, unwanted); got != "blocked" {
		t.Errorf("the rule that the extension added: %s", got)
	}
	for component, saved := range map[string]int{state.ComponentExtensions: 1, state.ComponentExtensionStorage: 2} {
		if l := line(report, component, e.Origin()); l.Saved != saved || l.Restored != saved || l.Dropped != 0 || l.Reason.Code != "" {
			t.Errorf("%+v", l)
		}
	}
}

// If Chrome refuses an extension, the create fails.
func TestExtensionThatChromeRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dir := r.dir()
	e := r.installKeeper(dir, "1.0")
	if err := os.Remove(filepath.Join(ExtensionDir(dir, e.ID), "worker.js")); err != nil {
		t.Fatal(err)
	}
	_, err := r.Fresh(within(t), dir, Options{Extensions: []state.Extension{e}})
	if err == nil || !strings.Contains(err.Error(), "background script") || strings.Contains(err.Error(), dir.Path) {
		t.Errorf("%v", err)
	}
}
