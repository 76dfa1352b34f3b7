package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

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
