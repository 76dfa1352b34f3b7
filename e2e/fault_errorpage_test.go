package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// serveTitle starts a site whose pages have their path as the title.
func serveTitle(t testing.TB) *httptest.Server {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, "<!doctype html><title>%s</title>", r.URL.Path)
	}))
	t.Cleanup(site.Close)
	return site
}

// addTab opens a tab at an address and returns its CDP session once it has loaded.
func addTab(w *wire, url string) (page string) {
	w.t.Helper()
	page = w.newTab()
	w.open(page, url)
	return page
}

// A tab that shows an error page after a restore, because its site is down or its address
// is refused, is named in the report with the network error. A tab that showed one when it
// was saved is as it was. A site that answers with an error is up.
func TestFaultErrorPages(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{Args: []string{"--egress", "required", "--trusted-proxy", "192.0.2.1/32", "--allow-private", "127.0.0.0/8"}, ShellSpare: true})
	for _, engine := range []string{"chrome", "shell"} {
		for _, mode := range []string{toFiles, "save_snapshot_mode=memory"} {
			up, down, never := serveTitle(t), serveTitle(t), serveTitle(t)
			refused := newVictimAt(t, "127.77.0.1")
			never.Close()
			s := begin(t, d, obj{"engine": engine})
			w := dial(t, s.CDP)
			page, _ := w.page()
			w.open(page, up.URL+"/up")
			downPage := addTab(w, down.URL+"/down")
			w.eval(downPage, `sessionStorage.setItem("k", "v")`)
			addTab(w, refused.url("127.77.0.1", "refused"))
			neverPage := w.newTab()
			w.call(neverPage, "Page.navigate", obj{"url": never.URL + "/never"}, nil)
			w.until(neverPage, `location.protocol === "chrome-error:"`)
			w.close()
			snap := finish(t, d, s.ID, mode).Snapshot.ID
			down.Close()

			again := begin(t, d, obj{"restore_from_environment_id": snap, "egress": obj{"deny": []string{"127.77.0.1"}}, "enable_memory_snapshot": false})
			r := verified(t, d, again.ID)
			text := strings.Join(r.Warnings, "\n")
			for _, want := range []string{down.URL + "/down shows an error page (net::ERR_CONNECTION_REFUSED)", refused.url("127.77.0.1", "refused") + " shows an error page (net::ERR_CONNECTION_REFUSED)"} {
				if !strings.Contains(text, want) {
					t.Errorf("%s, %s: the report does not say %q", engine, mode, want)
				}
			}
			if strings.Contains(text, "/never") || strings.Contains(text, "/up") {
				t.Errorf("%s, %s: the report names a tab that is as it was saved", engine, mode)
			}
			i := slices.IndexFunc(r.Components, func(c state.Component) bool { return c.Name == state.ComponentTabs })
			if r.Verification != restore.VerificationMismatch || i < 0 || r.Components[i].Reason.Code != report.ErrorPage {
				t.Errorf("%s, %s: verification %s, %+v", engine, mode, r.Verification, r.Components)
			}
			finish(t, d, again.ID, throwAway)
		}
	}
}

// Tabs with the same address are compared each with itself.
func TestSameAddress(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{ShellSpare: true})
	site := serveTitle(t)
	values := []string{"one", "two", "three", "four"}
	read := func(w *wire) (all []string) {
		for _, info := range w.targets() {
			if info.Type == "page" {
				page := w.attach(info.ID)
				w.until(page, `document.readyState === "complete"`)
				all = append(all, w.eval(page, `[window.name, sessionStorage.getItem("v")].join(" ")`))
			}
		}
		slices.Sort(all) // Chrome lists targets in any order
		return all
	}
	for _, engine := range []string{"chrome", "shell"} {
		s := begin(t, d, obj{"engine": engine})
		w := dial(t, s.CDP)
		for i, value := range values {
			var page string
			if i == 0 {
				page, _ = w.page()
				w.open(page, site.URL+"/same")
			} else {
				page = addTab(w, site.URL+"/same")
			}
			w.eval(page, fmt.Sprintf(`sessionStorage.setItem("v", %q); window.name = %[1]q`, value))
		}
		before := read(w)
		w.close()
		for _, mode := range []string{"checkpoint", toFiles} {
			var snap string
			if mode == "checkpoint" {
				snap = checkpoint(t, d, s.ID, body{}).Snapshot.ID
			} else {
				snap = finish(t, d, s.ID, mode).Snapshot.ID
			}
			again := begin(t, d, obj{"restore_from_environment_id": snap})
			r := verified(t, d, again.ID)
			if r.Verification != "ok" || len(r.Differences) > 0 {
				t.Errorf("%s, %s: verification %s, %+v, %q", engine, mode, r.Verification, r.Differences, r.Warnings)
			}
			w := dial(t, again.CDP)
			if after := read(w); !slices.Equal(after, before) {
				t.Errorf("%s, %s: restored %q of %q", engine, mode, after, before)
			}
			w.close()
			finish(t, d, again.ID, throwAway)
		}
	}
}
