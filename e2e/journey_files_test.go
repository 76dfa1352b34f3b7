package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
)

// Downloads from pages become the session's files, under the name that the site suggests.
// Two downloads of one name, through two client libraries, are two files. The GUID that
// the clients get leads to each.
func downloadArrives(t *testing.T, d *daemon.Daemon) {
	var served atomic.Int32
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/report" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, `<title>shop</title><a id=get href="/report">your report</a>`)
			return
		}
		w.Header().Set("Content-Disposition", `attachment; filename="report.csv"`)
		_, _ = fmt.Fprintf(w, "report %d", served.Add(1))
	}))
	t.Cleanup(site.Close)
	s := create(t, d, body{})
	names := []string{"report.csv", "report (1).csv"}
	for n, client := range []string{playwright, puppeteer} {
		var got struct{ Name, State, GUID string }
		if err := json.Unmarshal(drive(t, client, s.CDP, visit(site.URL), step{"do": "download", "selector": "#get"})[1], &got); err != nil {
			t.Fatal(err)
		}
		if got.Name != "report.csv" || got.State != "completed" {
			t.Errorf("%s: %+v", client, got)
		}
		// The client has the event, so the file is there.
		for _, name := range []string{got.GUID, url.PathEscape(names[n])} {
			if status, text := plain(t, d, http.MethodGet, at(s.ID, "/files/"+name), nil); status != http.StatusOK || text != fmt.Sprint("report ", n+1) {
				t.Errorf("%s: the file %s: %d %q", client, name, status, text)
			}
		}
	}
	var list struct {
		Files []struct{ Name, GUID string }
	}
	d.Must(t, http.StatusOK, http.MethodGet, at(s.ID, "/files"), nil).Into(t, &list)
	if len(list.Files) != 2 || list.Files[0].Name != names[1] || list.Files[1].Name != names[0] {
		t.Fatalf("%+v", list.Files)
	}
	d.Must(t, http.StatusNoContent, http.MethodDelete, at(s.ID, "/files/"+list.Files[0].GUID), nil)
	if status, _ := plain(t, d, http.MethodGet, at(s.ID, "/files/"+url.PathEscape(names[1])), nil); status != http.StatusNotFound {
		t.Errorf("the deleted file: %d", status)
	}
	end(t, d, s.ID, "")
}

// A client sets an uploaded file in a page, by the path that the file would have on the
// client's machine. A file that the session does not have is refused.
func uploadedFileIsGiven(t *testing.T, d *daemon.Daemon) {
	s := create(t, d, body{"start_url": `data:text/html,<input type=file id=f>`})
	upload(t, d, s.ID, "mine.txt", "hello")
	give := func(file string, fails bool) step {
		return step{"do": "setFiles", "selector": "#f", "files": []string{file}, "fails": fails}
	}
	got := drive(t, puppeteer, s.CDP,
		await(`!!document.querySelector("#f")`),
		give("/home/ada/passwd", true), evaluate(`String(document.querySelector("#f").files.length)`),
		give("/home/ada/mine.txt", false), evaluate(`document.querySelector("#f").files[0].text()`))
	if why := text(t, got[1]); !strings.Contains(why, "no such file") || !strings.Contains(why, "POST /v1/sessions/{id}/files?name=passwd") {
		t.Errorf("a file that the session lacks: %s", why)
	}
	if n, content := text(t, got[2]), text(t, got[4]); n != "0" || content != "hello" {
		t.Errorf("the page has %s files, then %q", n, content)
	}
	end(t, d, s.ID, "")
}

// A download without an end, in a frame and a browser context of the client, is cancelled
// at the limit, and one that the server keeps interrupting leaves no file. The session
// continues: a small download arrives. The run's event and the log say why.
func TestDownloadsAreLimited(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, "<title>shop</title><p>hello</p>")
			return
		}
		w.Header().Set("Content-Disposition", "attachment; filename="+r.URL.Path[1:])
		switch r.URL.Path {
		case "/small":
			_, _ = fmt.Fprint(w, "small")
		case "/endless":
			_, _ = w.Write(make([]byte, 2_000_000))
			<-r.Context().Done() // the browser has closed the connection
		case "/interrupted": // Chrome asks again for the rest, a few times
			w.Header().Set("ETag", `"1"`)
			from, status := 0, http.StatusOK
			if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-99999/100000", from))
				status = http.StatusPartialContent
			}
			w.Header().Set("Content-Length", fmt.Sprint(100000-from))
			w.WriteHeader(status)
			_, _ = w.Write(make([]byte, 1000)) // too few, so the server cuts the connection
		}
	}))
	t.Cleanup(site.Close)
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", browser.EngineShell, "--max-downloads", "1000000"}})
	s := create(t, d, body{})
	w := dial(t, s.CDP)
	var made struct{ BrowserContextID, TargetID string }
	w.call("", "Target.createBrowserContext", nil, &made)
	w.call("", "Browser.setDownloadBehavior", obj{"behavior": "allow", "downloadPath": "/", "browserContextId": made.BrowserContextID, "eventsEnabled": true}, nil)
	w.call("", "Target.createTarget", obj{"url": "about:blank", "browserContextId": made.BrowserContextID}, &made)
	page := w.attach(made.TargetID)
	w.open(page, site.URL+"/")
	for _, one := range []struct{ name, state string }{{"endless", "canceled"}, {"interrupted", "canceled"}, {"small", "completed"}} {
		w.eval(page, `document.body.append(Object.assign(document.createElement("iframe"), {src: "/`+one.name+`"}))`)
		var got struct{ State string }
		for got.State == "" || got.State == "inProgress" {
			if err := json.Unmarshal(w.await("", "Browser.downloadProgress"), &got); err != nil {
				t.Fatal(err)
			}
		}
		if got.State != one.state {
			t.Errorf("%s is %s", one.name, got.State)
		}
		daemon.Eventually(t, grace, "no incomplete file is left of "+one.name, func() bool {
			left, err := filepath.Glob(filepath.Join(d.Dir, "run", "*", "downloads", "*.crdownload"))
			return err == nil && len(left) == 0
		})
	}
	if status, text := plain(t, d, http.MethodGet, at(s.ID, "/files/small"), nil); status != http.StatusOK || text != "small" {
		t.Errorf("the small download: %d %q", status, text)
	}
	end(t, d, s.ID, "")
	reasons := map[string]string{}
	for _, e := range historyOf(t, d, s.ID)[0].events {
		if state := e.Data["state"]; e.Type == "download" && state != "started" {
			reasons[fmt.Sprint(e.Data["name"])] = fmt.Sprint(state, " ", e.Data["reason"])
		}
	}
	want := map[string]string{"endless": "canceled the session's downloads exceed --max-downloads", "interrupted": "canceled <nil>", "small": "completed <nil>"}
	if !maps.Equal(reasons, want) {
		t.Errorf("the events say %q, want %q", reasons, want)
	}
	if log := d.Log(); strings.Count(log, "the daemon cancelled a download") != 1 || strings.Contains(log, "endless") {
		t.Errorf("the log:\n%s", log)
	}
}
