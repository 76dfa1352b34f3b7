package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// TestCacheStaysInItsSession: a session has an HTTP cache, and no archive contains any
// of it. Neither a restore nor a fresh session is served from the cache of another
// session. The long form tries each engine with both kinds of snapshots, and keeps a spare
// of the shell too.
func TestCacheStaysInItsSession(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{ShellSpare: storetest.Long()})
	for _, engine := range []string{browser.EngineChrome, browser.EngineShell} {
		var asked atomic.Int64
		const cached = "kept in the HTTP cache alone"
		site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			if r.URL.Path == "/cached" {
				asked.Add(1)
				w.Header().Set("Cache-Control", "max-age=3600")
				_, _ = fmt.Fprint(w, cached)
			}
		}))
		t.Cleanup(site.Close)
		const fetch = `(async () => (await (await fetch("/cached")).text()).length)()`
		asks := func(what string, s created, want int64) {
			t.Helper()
			before := asked.Load()
			w := dial(t, s.CDP)
			page, _ := w.page()
			w.open(page, site.URL)
			for range 2 {
				if got := w.eval(page, fetch); got != fmt.Sprint(len(cached)) {
					t.Errorf("%s, %s: a fetch gave %s bytes", engine, what, got)
				}
			}
			if n := asked.Load() - before; n != want {
				t.Errorf("%s, %s: two fetches made %d requests to the site, want %d", engine, what, n, want)
			}
		}
		modes := map[string][]string{browser.EngineChrome: {"filesystem"}, browser.EngineShell: {"memory"}}[engine]
		if storetest.Long() {
			modes = []string{"filesystem", "memory"}
		}
		for _, mode := range modes {
			s := create(t, d, body{"engine": engine})
			asks("a fresh session", s, 1)
			snapshot := save(t, d, s.ID, mode)
			archive := d.Must(t, http.StatusOK, http.MethodGet, "/v1/snapshots/"+snapshot.ID+"/archive", nil).Body
			unpack := exec.CommandContext(t.Context(), "zstd", "-dc")
			unpack.Stdin = bytes.NewReader(archive)
			files, err := unpack.Output()
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(files, []byte(cached)) {
				t.Errorf("%s, %s: the archive contains cached data", engine, mode)
			}
			s = create(t, d, body{"engine": engine, "restore_from_environment_id": snapshot.ID, "enable_memory_snapshot": false})
			asks("restored from "+mode, s, 1)
			end(t, d, s.ID, "save_snapshot_mode=none")
		}
	}
}
