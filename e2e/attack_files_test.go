package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// wantedFiles returns the paths of the files that attackers want to read.
func (p *attackSetup) wantedFiles() []string {
	return []string{"/etc/passwd", p.secret, filepath.Join(p.d.Dir, "stasis.db"), filepath.Join(p.d.Dir, "identity"),
		filepath.Join(p.ownDir, "profile", "Local State"), "/proc/self/environ"}
}

// filesByAddress tries addresses of files and of Chrome's own pages, in every spelling
// and with every command that takes an address.
func filesByAddress(t *testing.T, p *attackSetup) {
	urls := []string{"chrome://settings", "chrome://version", "devtools://devtools/bundled/inspector.html", "CHROME://gpu",
		"view-source:file:///etc/passwd", "file:///", "file://localhost/etc/passwd", "FiLe:/etc/passwd", "\tfile:///etc/passwd",
		"fi\nle:///etc/passwd", " file:etc/passwd", "view-source:view-source:file:///etc/passwd", "filesystem:file:///etc/passwd",
		"about:version", "chrome-untrusted://terminal", "ftp://localhost/", "chrome-search://local-ntp/"}
	for _, path := range p.wantedFiles() {
		urls = append(urls, "file://"+path)
	}
	for _, url := range urls {
		p.w.refused(p.page, "Page.navigate", obj{"url": url})
		p.w.refused("", "Target.createTarget", obj{"url": url})
		p.w.refused(p.page, "Network.loadNetworkResource", obj{"url": url, "options": obj{"disableCache": true, "includeCredentials": false}})
		if a := p.d.Call(t, http.MethodPost, at(p.own.ID, "/navigate"), obj{"url": url}); a.Status != http.StatusUnprocessableEntity {
			t.Errorf("navigate to %q = %d %s", url, a.Status, a.Body)
		}
	}
	p.noFileIsOpen(t)
}

// noFileIsOpen fails the test if a page of the attacker shows a forbidden address.
func (p *attackSetup) noFileIsOpen(t *testing.T) {
	t.Helper()
	for _, info := range p.w.targets() {
		for _, no := range []string{"file:", "chrome:", "devtools:", "view-source:"} {
			if strings.HasPrefix(info.URL, no) && !strings.HasPrefix(info.URL, "chrome://newtab") {
				t.Errorf("a %s target shows %s", info.Type, info.URL)
			}
		}
	}
}

// filesByScript tries what the scripts of a page can do.
func filesByScript(t *testing.T, p *attackSetup) {
	for _, path := range p.wantedFiles() {
		for _, script := range []string{
			`fetch("file://%s").then(r => r.text())`,
			`new Promise((ok, no) => { const x = new XMLHttpRequest(); x.open("GET", "file://%s"); x.onload = () => ok(x.responseText); x.onerror = () => ok("failed"); x.send() })`,
			`new Promise(ok => { const f = document.createElement("iframe"); f.src = "file://%s"; f.onload = () => { try { ok(f.contentDocument.body.innerText) } catch (e) { ok("failed " + e) } }; document.body.append(f); setTimeout(() => ok("failed"), 300) })`,
			`(() => { const w = window.open("file://%s"); try { return w ? w.document.body.innerText : "failed" } catch (e) { return "failed " + e } })()`,
			`(() => { location.href = "file://%s"; return "failed" })()`,
			`import("file://%s").then(String, e => "failed " + e)`,
		} {
			got := p.w.eval(p.page, fmt.Sprintf(script, path))
			if !strings.Contains(got, "failed") && !strings.Contains(got, "Failed") && got != "" {
				t.Errorf("script %s read %q", fmt.Sprintf(script, path), got)
			}
		}
	}
	if got := p.w.eval(p.page, `location.origin`); got != p.site.URL {
		t.Errorf("the page navigated to %s", got)
	}
	p.noFileIsOpen(t)
}

// filesByCommand tries redirects and rewritten requests, over the network and by a
// client that answers requests itself.
func filesByCommand(t *testing.T, p *attackSetup) {
	p.w.call(p.page, "Fetch.enable", obj{"patterns": []obj{{"urlPattern": "*taken*"}}}, nil)
	asked := p.w.post(p.page, "Runtime.evaluate", obj{"expression": `fetch("/taken").then(r => r.text(), e => "failed")`, "awaitPromise": true})
	var paused struct {
		RequestID string `json:"requestId"`
	}
	if err := json.Unmarshal(p.w.await(p.page, "Fetch.requestPaused"), &paused); err != nil {
		t.Fatal(err)
	}
	p.w.refused(p.page, "Fetch.continueRequest", obj{"requestId": paused.RequestID, "url": "file:///etc/passwd"})
	p.w.call(p.page, "Fetch.fulfillRequest", obj{"requestId": paused.RequestID, "responseCode": 302,
		"responseHeaders": []obj{{"name": "Location", "value": "file:///etc/passwd"}}}, nil)
	if got := string((<-asked).Result); !strings.Contains(got, "failed") {
		t.Errorf("a redirect to a file was followed: %s", got)
	}
	p.w.call(p.page, "Fetch.disable", nil, nil)

	for _, handle := range []string{"blob:file:///etc/passwd", "/etc/passwd", "file:///etc/passwd", "1"} {
		if r := p.w.try(p.page, "IO.read", obj{"handle": handle}); r.Error == nil {
			t.Errorf("IO.read %s: %s", handle, r.Result)
		}
	}
	// Commands that return text must not return a file's.
	for _, c := range []struct {
		method string
		params obj
	}{
		{"Page.getResourceContent", obj{"frameId": p.target, "url": "file:///etc/passwd"}},
		{"Debugger.getScriptSource", obj{"scriptId": "file:///etc/passwd"}},
		{"FileSystem.getDirectory", obj{"bucketFileSystemLocator": obj{"storageKey": "file:///", "pathComponents": []string{"etc"}}}},
		{"Tracing.start", obj{"tracingBackend": "system"}},
		{"Tracing.start", obj{"perfettoConfig": "eA=="}},
	} {
		session := p.page
		if strings.HasPrefix(c.method, "Tracing.") {
			session = ""
		}
		if r := p.w.try(session, c.method, c.params); r.Error == nil || strings.Contains(string(r.Result), "root:") {
			t.Errorf("%s %v: %s", c.method, c.params, r.Result)
		}
	}
}

// filesByInput checks that a page can only be given the session's own files.
func filesByInput(t *testing.T, p *attackSetup) {
	p.w.eval(p.page, `document.body.innerHTML = '<input type=file id=f>'; 1`)
	var node struct{ Result struct{ ObjectID string } }
	p.w.call(p.page, "Runtime.evaluate", obj{"expression": `document.getElementById("f")`}, &node)
	give := func(path string) obj { return obj{"objectId": node.Result.ObjectID, "files": []string{path}} }
	drag := func(path string) obj {
		return obj{"type": "drop", "x": 5, "y": 5, "data": obj{"items": []obj{}, "files": []string{path}, "dragOperationsMask": 1}}
	}
	own := filepath.Join(p.ownDir, "files")
	uid := ownerOf(t, own)
	if err := os.Symlink("/etc/passwd", filepath.Join(own, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(own, "dir")); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(filepath.Join(own, "link"), uid, uid); err != nil {
		t.Fatal(err)
	}
	paths := append(p.wantedFiles(), "../profile/Local State", "../../"+filepath.Base(p.otherDir)+"/files/secret.txt", "link", "dir/passwd",
		filepath.Join(own, "link"), filepath.Join(own, "..", "profile", "Local State"), own, ".", "", own+"/../../../stasis.db", "./dir/../../home")
	for _, path := range paths {
		p.w.refused(p.page, "DOM.setFileInputFiles", give(path))
		p.w.refused(p.page, "Input.dispatchDragEvent", drag(path))
	}
	if got := p.w.eval(p.page, `document.getElementById("f").files.length`); got != "0" {
		t.Errorf("the page has %s files, want 0", got)
	}
	// The session's own file is allowed.
	upload(t, p.d, p.own.ID, "mine.txt", "hello")
	p.w.call(p.page, "DOM.setFileInputFiles", give("mine.txt"), nil)
	if got := p.w.eval(p.page, `document.getElementById("f").files[0].text()`); got != "hello" {
		t.Errorf("the page read %q from its own file", got)
	}
}

// downloadsElsewhere checks that a download goes to the session's files, whatever folder
// the client names.
func downloadsElsewhere(t *testing.T, p *attackSetup) {
	elsewhere, err := os.MkdirTemp("", "elsewhere-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(elsewhere) }) // a folder of this test
	if err := os.Chmod(elsewhere, 0o777); err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct{ session, method string }{{"", "Browser.setDownloadBehavior"}, {p.page, "Page.setDownloadBehavior"}} {
		for j, to := range []string{elsewhere, filepath.Join(p.otherDir, "files"), "../../../../tmp/" + filepath.Base(elsewhere), p.d.Dir} {
			r := p.w.try(c.session, c.method, obj{"behavior": "allow", "downloadPath": to, "eventsEnabled": true})
			if r.Error != nil {
				continue // a refusal is also right
			}
			name := fmt.Sprintf("loot%d%d.txt", i, j)
			p.w.eval(p.page, `(() => { const a = document.createElement("a"); a.href = URL.createObjectURL(new Blob(["x"])); a.download = "`+name+`"; a.click() })()`)
			daemon.Eventually(t, grace, name+" is listed among the session's files", func() bool {
				_, err := os.Stat(filepath.Join(p.ownDir, "files", name))
				return err == nil
			})
		}
	}
	for _, dir := range []string{elsewhere, filepath.Join(p.otherDir, "files"), p.d.Dir} {
		for _, name := range files(t, dir) {
			if strings.HasPrefix(filepath.Base(name), "loot") && !strings.HasPrefix(filepath.Join(dir, name), p.ownDir) {
				t.Errorf("the download %s was written to %s", name, dir)
			}
		}
	}
}

// linksAmongFiles checks that symbolic links among the session's files cannot be read
// over the API.
func linksAmongFiles(t *testing.T, p *attackSetup) {
	dir := filepath.Join(p.ownDir, "files")
	for name, to := range map[string]string{"l1": "/etc/passwd", "l2": p.secret, "l3": "../profile/Local State", "l4": "/etc", "l5": "mine.txt"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	var list struct{ Files []struct{ Name string } }
	p.d.Must(t, http.StatusOK, http.MethodGet, at(p.own.ID, "/files"), nil).Into(t, &list)
	for _, f := range list.Files {
		if slices.Contains([]string{"l1", "l2", "l3", "l4", "l5", "fifo"}, f.Name) {
			t.Errorf("%s is listed", f.Name)
		}
	}
	for _, name := range []string{"l1", "l2", "l3", "l4", "fifo", "..", "%2e%2e%2fprofile%2fLocal%20State", "%2Fetc%2Fpasswd"} {
		if status, body := plain(t, p.d, http.MethodGet, "/v1/sessions/"+p.own.ID+"/files/"+name, nil); status != http.StatusNotFound {
			t.Errorf("GET %s = %d %.200s", name, status, body)
		}
	}
	// An upload replaces a link and does not write through it.
	upload(t, p.d, p.own.ID, "l2", "mine")
	if raw, err := os.ReadFile(p.secret); err != nil || string(raw) != planted {
		t.Errorf("the other's file is now %q, %v", raw, err)
	}
}
