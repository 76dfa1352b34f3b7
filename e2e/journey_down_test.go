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
	"github.com/stasisd/stasis/freeport"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/snapshot/storetest"
	"github.com/stasisd/stasis/state"
)

// crossing is the path of an environment between engines: one saves it, others restore and
// save it while its site is slow, then others while the site is down. The last restores
// begin while the site is down.
type crossing struct {
	saved            string
	slow, down, last []string
}

// crossings starts with each engine. In the short form each engine takes each part once,
// and no engine restores its own save. In the long form both engines take each part.
func crossings() []crossing {
	const chrome, shell = browser.EngineChrome, browser.EngineShell
	if both := []string{shell, chrome}; storetest.Long() {
		return []crossing{{shell, both, both, both}, {chrome, both, both, both}}
	}
	return []crossing{
		{shell, []string{chrome}, []string{shell}, []string{chrome}},
		{chrome, []string{shell}, []string{chrome}, []string{shell}},
	}
}

// pausableSite is a plain site that can be slow.
type pausableSite struct {
	*httptest.Server
	answer chan struct{} // has a value unless the site is slow
}

func startPausable(t testing.TB) *pausableSite {
	t.Helper()
	s := &pausableSite{answer: make(chan struct{}, 1)}
	s.answer <- struct{}{}
	address, err := freeport.Address() // it listens there again later
	if err != nil {
		t.Fatal(err)
	}
	s.Server = serveAt(t, address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.answer:
		case <-r.Context().Done():
			return
		}
		s.answer <- struct{}{}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<title>x</title>plain") // fails only if the browser has disconnected
	}))
	return s
}

// TestPlainSiteDown: a save keeps state that a restore has not applied yet, because the
// site has not answered. While a site is down, a restore reports the state that it could
// not apply to the site's page, and the next save keeps that state, in both engines. When
// the site is up again, a reload in the same session has it. In the long form a new
// restore of the last save has it too.
func TestPlainSiteDown(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()})
	all := crossings()
	from, sites := make([]string, len(all)), make([]*pausableSite, len(all))
	for i, c := range all {
		sites[i] = startPausable(t)
		from[i] = keepPlain(t, d, c.saved, sites[i].URL+"/plain")
		<-sites[i].answer
	}
	for n := range all[0].slow {
		for i, c := range all {
			from[i] = create(t, d, body{"restore_from_session_id": from[i], "engine": c.slow[n]}).ID
		}
		saveAtOnce(t, d, from...)
	}
	for i, c := range all {
		url, address := sites[i].URL+"/plain", sites[i].Listener.Addr().String()
		sites[i].Close()
		for _, engine := range c.down {
			r := create(t, d, body{"restore_from_session_id": from[i], "engine": engine})
			v := verified(t, d, r.ID)
			if v.Verification != restore.VerificationMismatch {
				t.Errorf("from %s, in %s: the report of a site that is down: %s", c.saved, engine, v.Verification)
			}
			for _, difference := range v.Differences {
				if difference.By != state.ByRestore {
					t.Errorf("from %s, in %s: %+v", c.saved, engine, difference)
				}
			}
			save(t, d, r.ID, "filesystem")
			from[i] = r.ID
		}
		sites[i].answer <- struct{}{}
		for _, engine := range c.last {
			r := create(t, d, body{"restore_from_session_id": from[i], "engine": engine})
			verified(t, d, r.ID)
			up := serveAt(t, address, sites[i].Config.Handler)
			w := dial(t, r.CDP)
			page := w.attach(w.tab("/plain"))
			w.open(page, url)
			if is := w.eval(page, readPlain); is != hasPlain {
				t.Errorf("from %s, in %s: after a reload: %s", c.saved, engine, is)
			}
			end(t, d, r.ID, "save_snapshot_mode=none")
			if storetest.Long() {
				r := create(t, d, body{"restore_from_session_id": from[i], "engine": engine})
				if is := firstEval(t, rawCDP, r.CDP, "/plain", readPlain); is != hasPlain {
					t.Errorf("from %s, in %s: after saves while the site did not answer: %s", c.saved, engine, is)
				}
				end(t, d, r.ID, "save_snapshot_mode=none")
			}
			up.Close()
		}
	}
}

// saveAtOnce ends sessions at the same time, each with a filesystem snapshot. Each save
// waits for a site that does not answer.
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

// serveAt serves a handler at an address until the test ends.
func serveAt(t testing.TB, address string, handler http.Handler) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	site := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	site.Start()
	t.Cleanup(site.Close)
	return site
}
