package e2e

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/snapshot/storetest"
	"github.com/stasisd/stasis/state"
)

// crossing is the way of an environment: one engine saves it, others restore and save it
// while its site does not answer, and others restore it afterwards.
type crossing struct {
	saved         string
	during, after []string
}

// crossings starts with each engine. In the short form each environment crosses to the
// other engine and back. In the long form both engines take each part.
func crossings() []crossing {
	if both := []string{browser.EngineShell, browser.EngineChrome}; storetest.Long() {
		return []crossing{{browser.EngineShell, both, both}, {browser.EngineChrome, both, both}}
	}
	return []crossing{
		{browser.EngineShell, []string{browser.EngineChrome}, []string{browser.EngineShell}},
		{browser.EngineChrome, []string{browser.EngineShell}, []string{browser.EngineChrome}},
	}
}

// TestPlainSiteDown: while a site is down, a restore reports the state that it could not
// apply to the site's page, and the next save keeps that state, in both engines. When
// the site is up again, a reload in the same session has it. The long form also restores
// the last save anew when the site is up.
func TestPlainSiteDown(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	for _, c := range crossings() {
		engine, site := c.saved, plainSite(t)
		url, address := site.URL+"/plain", site.Listener.Addr().String()
		from := keepPlain(t, d, engine, url)
		site.Close()
		for _, down := range c.during {
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
		if !storetest.Long() {
			continue
		}
		for _, up := range c.after {
			r := create(t, d, body{"restore_from_session_id": from, "engine": up})
			if is := firstEval(t, rawCDP, r.CDP, "/plain", readPlain); is != hasPlain {
				t.Errorf("%s to %s: after saves while the site was down: %s", engine, up, is)
			}
			end(t, d, r.ID, "save_snapshot_mode=none")
		}
	}
}

// TestPlainSiteSlow: a save keeps state that a restore has not applied yet, because the
// site has not answered. All environments are saved at once, because each save waits for
// the site.
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
	all := crossings()
	from := make([]string, len(all))
	for i, c := range all {
		from[i] = keepPlain(t, d, c.saved, site.URL+"/plain")
	}
	<-answer
	for n := range all[0].during {
		for i, c := range all {
			from[i] = create(t, d, body{"restore_from_session_id": from[i], "engine": c.during[n]}).ID
		}
		saveAtOnce(t, d, from...)
	}
	answer <- struct{}{}
	for i, c := range all {
		for _, quick := range c.after {
			r := create(t, d, body{"restore_from_session_id": from[i], "engine": quick})
			if is := firstEval(t, rawCDP, r.CDP, "/plain", readPlain); is != hasPlain {
				t.Errorf("%s to %s: after saves while the site was slow: %s", c.saved, quick, is)
			}
			end(t, d, r.ID, "save_snapshot_mode=none")
		}
	}
}

// saveAtOnce ends sessions at the same time, each with a filesystem snapshot.
func saveAtOnce(t testing.TB, d *daemon.Daemon, ids ...string) {
	t.Helper()
	answers := make([]daemon.Answer, len(ids))
	var group sync.WaitGroup
	for i, id := range ids {
		group.Go(func() {
			answers[i] = d.Call(t, http.MethodDelete, "/v1/sessions/"+id+"?save_snapshot_mode=filesystem", nil)
		})
	}
	group.Wait()
	for i, a := range answers {
		if a.Status != http.StatusOK {
			t.Fatalf("the save of %s: %d %s", ids[i], a.Status, a.Body)
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
