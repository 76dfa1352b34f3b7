package e2e

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// TestPlainSiteDown: while a site is down, a restore reports the state that it could not
// apply to the site's page, and the next save keeps that state, in both engines. When
// the site is up again, a reload in the same session has it.
func TestPlainSiteDown(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	for _, engine := range []string{browser.EngineShell, browser.EngineChrome} {
		site := plainSite(t)
		url, address := site.URL+"/plain", site.Listener.Addr().String()
		from := keepPlain(t, d, engine, url)
		site.Close()
		for _, down := range []string{browser.EngineShell, browser.EngineChrome} {
			r := create(t, d, body{"restore_from_session_id": from, "engine": down})
			v := verified(t, d, r.ID)
			if v.Verification != restore.VerificationMismatch {
				t.Errorf("%s to %s: the report of a site that is down: %s", engine, down, v.Verification)
			}
			for _, difference := range v.Differences {
				if difference.By != state.ByRestore {
					t.Errorf("%s to %s: %+v", engine, down, difference)
				}
			}
			save(t, d, r.ID, "filesystem")
			from = r.ID
		}
		r := create(t, d, body{"restore_from_session_id": from, "engine": engine})
		verified(t, d, r.ID)
		serveAgain(t, site.Config.Handler, address)
		w := dial(t, r.CDP)
		page := w.attach(w.tab("/plain"))
		w.open(page, url)
		if is := w.eval(page, readPlain); is != hasPlain {
			t.Errorf("%s: after a reload: %s", engine, is)
		}
		end(t, d, r.ID, "save_snapshot_mode=none")
		for _, up := range []string{browser.EngineShell, browser.EngineChrome} {
			r := create(t, d, body{"restore_from_session_id": from, "engine": up})
			if is := firstEval(t, rawCDP, r.CDP, "/plain", readPlain); is != hasPlain {
				t.Errorf("%s to %s: after saves while the site was down: %s", engine, up, is)
			}
			end(t, d, r.ID, "save_snapshot_mode=none")
		}
	}
}

// TestPlainSiteSlow: a save keeps state that a restore has not applied yet, because the
// site has not answered.
func TestPlainSiteSlow(t *testing.T) {
	t.Parallel()
	answer := make(chan struct{}, 1)
	answer <- struct{}{}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-answer:
		case <-r.Context().Done():
			return
		}
		answer <- struct{}{}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<title>x</title>plain") // fails only if the browser has disconnected
	}))
	t.Cleanup(site.Close)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	for _, engine := range []string{browser.EngineShell, browser.EngineChrome} {
		from := keepPlain(t, d, engine, site.URL+"/plain")
		<-answer
		for _, slow := range []string{browser.EngineShell, browser.EngineChrome} {
			r := create(t, d, body{"restore_from_session_id": from, "engine": slow})
			save(t, d, r.ID, "filesystem")
			from = r.ID
		}
		answer <- struct{}{}
		for _, quick := range []string{browser.EngineShell, browser.EngineChrome} {
			r := create(t, d, body{"restore_from_session_id": from, "engine": quick})
			if is := firstEval(t, rawCDP, r.CDP, "/plain", readPlain); is != hasPlain {
				t.Errorf("%s to %s: after saves while the site was slow: %s", engine, quick, is)
			}
			end(t, d, r.ID, "save_snapshot_mode=none")
		}
	}
}

// serveAgain serves a handler at an address that was in use before.
func serveAgain(t testing.TB, handler http.Handler, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	site := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	site.Start()
	t.Cleanup(site.Close)
}
