package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// A person uses the live view in a real browser: types accents, a composition and an emoji,
// scrolls, opens and closes tabs, navigates, taps on a phone. A second viewer looks on and
// cannot do anything. See clients/live.mjs.
func TestLiveView(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/two" {
			_, _ = fmt.Fprint(w, "<title>two</title>two")
			return
		}
		_, _ = fmt.Fprint(w, `<title>&lt;img src=x onerror=alert(1)></title><body style="margin:0;height:3000px">
			<input style="position:absolute;left:50px;top:50px;width:400px;height:20px">
			<select style="position:absolute;left:50px;top:100px"><option>red<option>green</select>
			<a href="/two" target="_blank" style="position:absolute;left:50px;top:150px">a new tab</a>`)
	}))
	t.Cleanup(site.Close)
	d := daemon.Start(t, daemon.Options{Args: []string{"--spares", "0"}})
	for _, engine := range []string{"chrome", "shell"} {
		t.Run(engine, func(t *testing.T) {
			s := begin(t, d, obj{"engine": engine, "start_url": site.URL + "/", "viewport": obj{"width": 1024, "height": 768}})
			links := linksOf(t, d, daemon.Key, s.ID)
			hostileViewers(t, d, links)
			in, err := json.Marshal(obj{"control": links.Control, "view": links.Live, "cdp": s.CDP, "site": site.URL,
				"api": d.URL + at(s.ID, ""), "key": daemon.Key, "timeout_ms": stepDeadline.Milliseconds()})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "node", "clients/live.mjs")
			cmd.Stdin = strings.NewReader(string(in))
			out, err := cmd.Output()
			var result struct{ Error string }
			if failed := json.Unmarshal(out, &result); failed != nil || err != nil {
				t.Fatalf("%v %v %s", err, failed, result.Error)
			}
		})
	}
}

// hostileViewers checks that what is no command ends a viewer's connection, and that a
// page of another origin gets none.
func hostileViewers(t *testing.T, d *daemon.Daemon, links looks) {
	t.Helper()
	url := strings.Replace(strings.Replace(links.Control, "http://", "ws://", 1), "/live?", "/live/socket?", 1)
	for _, command := range []string{`{`, `[]`, `{"type":"Page.navigate"}`, `{"type":"mouse","event":"drag"}`, `{"type":"mouse","event":"move","x":1e300}`,
		`{"type":"key","event":"down","key":"` + strings.Repeat("k", 100) + `"}`} {
		w := dial(t, url)
		w.send([]byte(command))
		<-w.closed
	}
	if got := refusedUpgrade(t, url, http.Header{"Origin": {"https://evil.example"}}); got != 403 {
		t.Errorf("from another origin = %d", got)
	}
	w := dial(t, url)
	w.send([]byte(`{"type":"drawn","frame":-1}`)) // a picture that was never sent is ignored
	w.close()
}
