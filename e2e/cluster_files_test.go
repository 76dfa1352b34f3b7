package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
)

// sessionFile is a file as the API lists it.
type sessionFile struct {
	Name       string
	GUID       string
	Size       int64     `json:"size_bytes"`
	ModifiedAt time.Time `json:"modified_at"`
}

func filesOf(t *testing.T, d *daemon.Daemon, id string) []sessionFile {
	t.Helper()
	var list struct{ Files []sessionFile }
	d.Must(t, http.StatusOK, http.MethodGet, at(id, "/files"), nil).Into(t, &list)
	return list.Files
}

// has reports whether a session has a file.
func has(t *testing.T, d *daemon.Daemon, id, name string) bool {
	t.Helper()
	return slices.ContainsFunc(filesOf(t, d, id), func(f sessionFile) bool { return f.Name == name })
}

// big is the content of a download that takes some time to send.
var big = bytes.Repeat([]byte("0123456789abcdef"), 2<<20)

// downloadSite offers report.bin at once. Of slow.bin it sends half, and the rest when release is
// closed.
func downloadSite(t *testing.T, release <-chan struct{}) *httptest.Server {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/")
		if name != "report.bin" && name != "slow.bin" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, `<title>shop</title><p>hello</p>`)
			return
		}
		w.Header().Set("Content-Disposition", "attachment; filename="+name)
		w.Header().Set("Content-Length", fmt.Sprint(len(big)))
		if name == "report.bin" {
			_, _ = w.Write(big)
			return
		}
		_, _ = w.Write(big[:len(big)/2])
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
			_, _ = w.Write(big[len(big)/2:])
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(site.Close)
	return site
}

// Node a is drained. A session with downloads and an upload moves to b when its last download has
// ended. The same calls return the same files there, with the same names, GUIDs and bytes. Nothing
// stays on a.
func TestClusterFiles(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	release := make(chan struct{})
	site := downloadSite(t, release)
	c.only(t, 0)
	s := begin(t, a.Daemon, obj{"user_id": "ada", "engine": browser.EngineChrome})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	get := func(name string) {
		w.eval(page, `document.body.append(Object.assign(document.createElement("iframe"), {src: "/`+name+`"}))`)
	}
	const upName, upText = "päper (1).txt", "an upload"
	upload(t, a.Daemon, s.ID, upName, upText)
	get("report.bin")
	daemon.Eventually(t, grace, "the download is there", func() bool { return has(t, a.Daemon, s.ID, "report.bin") })
	before := filesOf(t, a.Daemon, s.ID)
	get("slow.bin")
	daemon.Eventually(t, grace, "the slow download has begun", func() bool {
		parts, err := filepath.Glob(filepath.Join(a.Dir, "run", "*", "downloads", "*"))
		return err == nil && slices.ContainsFunc(parts, func(p string) bool {
			info, err := os.Lstat(p)
			return err == nil && info.Mode().IsRegular() && info.Size() > 0
		})
	})

	c.drain(t, 1, false)
	c.drain(t, 0, true)
	daemon.Eventually(t, grace, "node a says why the session stays", func() bool {
		staying := b.state(t, "a").Staying
		return len(staying) == 1 && staying[0].SessionID == s.ID && strings.HasPrefix(staying[0].Reason, "a download of it still runs")
	})
	close(release)
	if code := w.ended(); code != 1012 {
		t.Errorf("the client was closed with %d", code)
	}
	w = dialMoved(t, s.CDP)
	if got := w.pages(); !slices.Equal(got, []string{site.URL + "/"}) {
		t.Errorf("the pages are %q", got)
	}
	for _, n := range []*clusterNode{b, a} { // a passes the calls on
		all := filesOf(t, n.Daemon, s.ID)
		old := slices.DeleteFunc(slices.Clone(all), func(f sessionFile) bool { return f.Name == "slow.bin" })
		if len(all) != 3 || !slices.Equal(old, before) {
			t.Fatalf("after the move: %+v, before: %+v", all, before)
		}
		for _, f := range all {
			want := string(big)
			if f.Name == upName {
				want = upText
			}
			names := []string{url.PathEscape(f.Name)}
			if f.GUID != "" {
				names = append(names, f.GUID)
			}
			for _, name := range names {
				if status, got := plain(t, n.Daemon, http.MethodGet, at(s.ID, "/files/"+name), nil); status != http.StatusOK || got != want {
					t.Errorf("the file %s: %d, %d bytes, want %d", name, status, len(got), len(want))
				}
			}
			if (f.GUID == "") != (f.Name == upName) {
				t.Errorf("%s has the GUID %q", f.Name, f.GUID)
			}
		}
	}
	daemon.Eventually(t, grace, "nothing is left on a", func() bool { return a.state(t, "a").Live == 0 && len(runDirs(t, a.Daemon)) == 0 })
	if parts, err := filepath.Glob(filepath.Join(b.Dir, "run", "*", "files", ".*")); err != nil || len(parts) != 0 {
		t.Errorf("left on b: %q, %v", parts, err)
	}

	// Chrome on b can use both folders: a page gets the upload, and a download the next number.
	w.eval(w.attach(w.tab("")), `document.body.append(Object.assign(document.createElement("iframe"), {src: "/report.bin"}))`)
	daemon.Eventually(t, grace, "the next download has a number", func() bool { return has(t, b.Daemon, s.ID, "report (1).bin") })
	give := drive(t, puppeteer, s.CDP, visit(site.URL), evaluate(`document.body.append(Object.assign(document.createElement("input"), {type: "file", id: "f"}))`),
		step{"do": "setFiles", "selector": "#f", "files": []string{"/home/ada/" + upName}}, evaluate(`document.querySelector("#f").files[0].text()`))
	if got := text(t, give[len(give)-1]); got != upText {
		t.Errorf("the page gets %q", got)
	}
	i := slices.IndexFunc(before, func(f sessionFile) bool { return f.GUID != "" })
	b.Must(t, http.StatusNoContent, http.MethodDelete, at(s.ID, "/files/"+before[i].GUID), nil)
	if has(t, b.Daemon, s.ID, "report.bin") {
		t.Error("a file that was deleted by its GUID is listed")
	}

	// b stops. What is left moves back.
	left := filesOf(t, b.Daemon, s.ID)
	c.drain(t, 0, false)
	daemon.Eventually(t, grace, "node a has room again", func() bool { return b.state(t, "a").State == "active" })
	b.Stop(t)
	if now := filesOf(t, a.Daemon, s.ID); len(now) != 3 || !slices.Equal(now, left) {
		t.Errorf("after b has stopped: %+v, before: %+v", now, left)
	}
	if dirs := runDirs(t, b.Daemon); len(dirs) != 0 {
		t.Errorf("left on b: %q", dirs)
	}
	finish(t, a.Daemon, s.ID, throwAway)
	if dirs := runDirs(t, a.Daemon); len(dirs) != 0 {
		t.Errorf("left on a: %q", dirs)
	}
}

// Node b may use less disk for a session than this one has files. So the session stays on the
// drained node, with its files and its tabs, and nothing is left on b.
func TestClusterFilesStay(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.add(t, "")
	b := c.add(t, "", "--session-disk", "67108864")
	site := apps.StartProbe(t)
	c.only(t, 0)
	s, w, _ := a.logIn(t, obj{"user_id": "ada"}, site.URL+"/", "login=yes")
	content := strings.Repeat("0123456789abcdef", 70<<16)
	upload(t, a.Daemon, s.ID, "big.bin", content)
	before := filesOf(t, a.Daemon, s.ID)
	c.drain(t, 1, false)
	c.drain(t, 0, true)
	if code := w.ended(); code != 1012 {
		t.Errorf("the client was closed with %d", code)
	}
	daemon.Eventually(t, grace, "node a says why the session stays", func() bool {
		staying := b.state(t, "a").Staying
		return len(staying) == 1 && strings.Contains(staying[0].Reason, "may use 67108864 bytes of the disk here")
	})
	if got := cookieOf(t, s.CDP, site.URL+"/"); got != "login=yes" {
		t.Errorf("the session has the cookies %q", got)
	}
	status, got := plain(t, a.Daemon, http.MethodGet, at(s.ID, "/files/big.bin"), nil)
	if now := filesOf(t, b.Daemon, s.ID); status != http.StatusOK || got != content || !slices.Equal(now, before) {
		t.Errorf("the file: %d, %d bytes; listed: %+v", status, len(got), now)
	}
	if onA, onB := runDirs(t, a.Daemon), runDirs(t, b.Daemon); len(onA) != 1 || len(onB) != 0 {
		t.Errorf("run directories on a: %q, on b: %q", onA, onB)
	}
	finish(t, a.Daemon, s.ID, throwAway)
}
