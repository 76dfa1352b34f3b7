package e2e

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/state"
)

// noteExtension stores what a page sends it in each of its storages, and marks every
// page before its first script. When it is installed it opens a page of Chrome itself,
// which must not disturb clients.
var noteExtension = map[string]string{
	"note/manifest.json": `{"manifest_version": 3, "name": "Note", "version": "1.0", "permissions": ["storage"],
		"host_permissions": ["<all_urls>"], "background": {"service_worker": "worker.js"},
		"content_scripts": [{"matches": ["<all_urls>"], "js": ["content.js"], "run_at": "document_start"}]}`,
	"note/content.js": `document.documentElement.dataset.note = chrome.runtime.id;
		document.addEventListener("ask", async (e) =>
			document.dispatchEvent(new CustomEvent("answered", {detail: await chrome.runtime.sendMessage(e.detail)})));`,
	"note/worker.js": `chrome.runtime.onInstalled.addListener(() => chrome.tabs.create({url: "chrome://version", active: false}));
		chrome.runtime.onMessage.addListener((text, from, answer) => { (async () => {
		const areas = [chrome.storage.local, chrome.storage.sync, chrome.storage.session];
		if (text) for (const area of areas) await area.set({text});
		answer((await Promise.all(areas.map((area) => area.get("text")))).map((it) => it.text ?? "nothing").join(" "));
	})(); return true; });`,
}

// askNote sends a text to the extension and returns what it has stored. With an empty
// text it only reads.
func askNote(said string) step {
	return evaluate(fmt.Sprintf(`new Promise((ok) => {
		document.addEventListener("answered", (e) => ok(document.documentElement.dataset.note + " " + window.first + " " + e.detail), {once: true});
		document.dispatchEvent(new CustomEvent("ask", {detail: %q}));
	})`, said))
}

// noteSite starts a site whose first script looks for the mark of noteExtension.
func noteSite(t *testing.T) *httptest.Server {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, `<title>site</title><script>window.first = document.documentElement.dataset.note</script>`)
	}))
	t.Cleanup(site.Close)
	return site
}

// TestExtensionJourney: an uploaded extension runs in the session before the first page. It
// is restored from the snapshot with its stored data and under the same ID, although its
// upload and the daemon that saved it are gone. So is a published extension in the same
// session, with its settings.
func TestExtensionJourney(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	site := noteSite(t)
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for name, content := range noteExtension {
		f, err := z.Create(name)
		if err == nil {
			_, err = f.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	post := func(raw []byte) daemon.Answer {
		return d.Send(t, daemon.Key, http.MethodPost, "/v1/extensions", bytes.NewReader(raw), http.Header{"Content-Type": {"application/zip"}})
	}
	var e struct{ ID, Name, Version string }
	first := post(packed.Bytes())
	if first.Into(t, &e); first.Status != http.StatusCreated || e.Name != "Note" || post(packed.Bytes()).Status != http.StatusOK {
		t.Fatalf("%d %s", first.Status, first.Body)
	}
	for _, bad := range []string{"Cr24\x03\x00\x00\x00\x00\x00\x00\x00", "no zip"} {
		if a := post([]byte(bad)); a.Status != http.StatusUnprocessableEntity || a.Code() != "invalid_extension" {
			t.Errorf("%q: %d %s", bad, a.Status, a.Body)
		}
	}
	if a := d.Call(t, http.MethodPost, "/v1/sessions", body{"extensions": []string{strings.Repeat("a", 32)}}); a.Code() != "extension_not_found" {
		t.Errorf("an unknown one: %d %s", a.Status, a.Body)
	}

	published := addPublished(t, d)
	s := create(t, d, body{"extensions": []string{e.ID, published.id}, "start_url": site.URL})
	got := drive(t, puppeteer, s.CDP, openTab(site.URL), askNote("kept")) // the first tab may be the extension's
	if now := text(t, got[len(got)-1]); now != e.ID+" "+e.ID+" kept kept kept" {
		t.Fatalf("it says %q", now)
	}
	published.declines(t, s.CDP)
	saved := save(t, d, s.ID, "filesystem")
	if a := d.Call(t, http.MethodDelete, "/v1/extensions/"+e.ID, nil); a.Code() != "extension_in_use" {
		t.Errorf("deleted while in use: %d %s", a.Status, a.Body)
	}
	for _, id := range []string{e.ID, published.id} {
		d.Must(t, http.StatusNoContent, http.MethodDelete, "/v1/extensions/"+id+"?force=true", nil)
	}
	d.Stop(t)
	d.Restart(t)

	back := create(t, d, body{"restore_from_environment_id": saved.ID})
	got = drive(t, puppeteer, back.CDP, openTab(site.URL), askNote(""))
	if now := text(t, got[len(got)-1]); now != e.ID+" "+e.ID+" kept kept kept" {
		t.Errorf("after the restore it says %q", now)
	}
	published.accepts(t, back.CDP)
	lines := 0
	for _, c := range back.Restored.Components {
		if c.Origin == "chrome-extension://"+e.ID && (c.Name == state.ComponentExtensions || c.Name == state.ComponentExtensionStorage) {
			lines++
			if c.Saved != 1 || c.Restored != 1 || c.Dropped != 0 {
				t.Errorf("%+v", c)
			}
		}
		if c.Name == state.ComponentExtensions && c.Origin == "chrome-extension://"+published.id && (c.Saved != 1 || c.Restored != 1) {
			t.Errorf("%+v", c)
		}
	}
	if lines != 2 {
		t.Errorf("%d report lines of it: %+v", lines, back.Restored.Components)
	}
	end(t, d, back.ID, "")
}
