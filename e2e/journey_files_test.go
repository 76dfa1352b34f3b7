package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// A download from a page becomes one of the session's files, without a command of the
// client.
func downloadArrives(t *testing.T, d *daemon.Daemon) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/report" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, `<title>shop</title><a id=get href="/report">your report</a>`)
			return
		}
		w.Header().Set("Content-Disposition", `attachment; filename="report.csv"`)
		_, _ = fmt.Fprint(w, "a,b\n1,2\n")
	}))
	t.Cleanup(site.Close)
	s := create(t, d, body{})
	// The page stays open when the client disconnects. A page that is closed at once may
	// never send its request.
	drive(t, puppeteer, s.CDP, visit(site.URL), click("#get"))
	daemon.Eventually(t, stepDeadline, "the download is listed among the session's files", func() bool {
		var list struct {
			Files []struct {
				Name string
				Size int64 `json:"size_bytes"`
			}
		}
		d.Must(t, http.StatusOK, http.MethodGet, at(s.ID, "/files"), nil).Into(t, &list)
		return len(list.Files) == 1 && list.Files[0].Name == "report.csv" && list.Files[0].Size == 8
	})
	if status, got := plain(t, d, http.MethodGet, at(s.ID, "/files/report.csv"), nil); status != http.StatusOK || got != "a,b\n1,2\n" {
		t.Errorf("the file: %d %q", status, got)
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
	if why := text(t, got[1]); !strings.Contains(why, "no such file") {
		t.Errorf("a file that the session lacks: %s", why)
	}
	if n, content := text(t, got[2]), text(t, got[4]); n != "0" || content != "hello" {
		t.Errorf("the page has %s files, then %q", n, content)
	}
	end(t, d, s.ID, "")
}
