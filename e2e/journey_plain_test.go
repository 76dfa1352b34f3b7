package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// putPlain puts state into a tab over CDP, and readPlain reads it.
const (
	putPlain  = `sessionStorage.ss = "2"; window.name = "wn"`
	readPlain = `JSON.stringify(sessionStorage) + " " + window.name`
	hasPlain  = `{"ss":"2"} wn`
)

// rawCDP is a client without a library.
const rawCDP = "raw CDP"

// plainSite serves documents without scripts.
func plainSite(t testing.TB) *httptest.Server {
	t.Helper()
	kinds := map[string]string{
		"/plain":    "text/html",
		"/second":   "text/html",
		"/text":     "text/plain",
		"/data.xml": "text/xml",
		"/pic.svg":  "image/svg+xml",
	}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, known := kinds[r.URL.Path]
		switch {
		case r.URL.Path == "/framed": // the frame is of another site than the page
			_, port, _ := strings.Cut(r.Host, ":")
			kind, known = "text/html", true
			defer io.WriteString(w, `<title>x</title><iframe src="http://b.localhost:`+port+`/plain"></iframe>`) //nolint:errcheck // the browser has gone
		case kind == "image/svg+xml":
			defer io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg"/>`) //nolint:errcheck // the browser has gone
		case kind == "text/xml":
			defer io.WriteString(w, `<a>b</a>`) //nolint:errcheck // the browser has gone
		case known:
			defer io.WriteString(w, `<title>x</title>plain`) //nolint:errcheck // the browser has gone
		}
		if !known {
			http.Error(w, "there is none", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", kind)
	}))
	t.Cleanup(site.Close)
	return site
}

// firstEval evaluates an expression in the tab with an address. It is the first command
// to that tab.
func firstEval(t testing.TB, client, cdpURL, contains, expression string) string {
	t.Helper()
	if client != rawCDP {
		got := drive(t, client, cdpURL, toTab(contains), evaluate(expression))
		return text(t, got[1])
	}
	w := dial(t, cdpURL)
	defer w.close()
	return w.eval(w.attach(w.tab(contains)), expression)
}

// tab waits for a tab whose address contains a text.
func (w *wire) tab(contains string) (id string) {
	w.t.Helper()
	daemon.Eventually(w.t, stepDeadline, "a tab at "+contains, func() bool {
		all := w.targets()
		i := slices.IndexFunc(all, func(t targetInfo) bool { return t.Type == "page" && strings.Contains(t.URL, contains) })
		if i >= 0 {
			id = all[i].ID
		}
		return i >= 0
	})
	return id
}

// keepPlain creates a session with one plain tab, puts state into the tab over CDP, and
// saves the session.
func keepPlain(t testing.TB, d *daemon.Daemon, engine, url string) string {
	t.Helper()
	s := create(t, d, body{"engine": engine})
	drive(t, puppeteer, s.CDP, visit(url), evaluate(putPlain))
	save(t, d, s.ID, "filesystem")
	return s.ID
}

// restoredBy restores a session until the restore takes the wanted path. A spare may not
// be ready at first.
func restoredBy(t testing.TB, d *daemon.Daemon, from, engine, path string) (s created) {
	t.Helper()
	daemon.Eventually(t, scriptDeadline, "a restore takes the path "+path, func() bool {
		s = create(t, d, body{"restore_from_session_id": from, "engine": engine})
		if s.Restored.Path != path {
			end(t, d, s.ID, "save_snapshot_mode=none")
		}
		return s.Restored.Path == path
	})
	return s
}

// TestPlainPage: a page without scripts has its sessionStorage and window.name at a
// client's first command, whatever engines saved and restored it.
func TestPlainPage(t *testing.T) {
	t.Parallel()
	site := plainSite(t)
	for _, path := range []string{restore.PathCold, restore.PathWarm} {
		d := daemon.Start(t, daemon.Options{NoSpares: path == restore.PathCold, ShellSpare: path == restore.PathWarm})
		for _, saved := range []string{browser.EngineChrome, browser.EngineShell} {
			from := keepPlain(t, d, saved, site.URL+"/plain")
			for running, clients := range map[string][]string{browser.EngineShell: {rawCDP, puppeteer, playwright}, browser.EngineChrome: {rawCDP}} {
				for _, client := range clients {
					r := restoredBy(t, d, from, running, path)
					if is := firstEval(t, client, r.CDP, "/plain", readPlain); is != hasPlain {
						t.Errorf("%s, %s to %s, %s: %s", path, saved, running, client, is)
					}
					if v := verified(t, d, r.ID); v.Verification != restore.VerificationOK || len(v.Differences) > 0 {
						t.Errorf("%s, %s to %s, %s: %s: %+v", path, saved, running, client, v.Verification, v.Differences)
					}
					end(t, d, r.ID, "save_snapshot_mode=none")
				}
			}
		}
		d.Stop(t)
	}
}

// TestPlainDocuments: every tab of an environment has its state, in front or behind, in
// every kind of document, and in a frame of another site.
func TestPlainDocuments(t *testing.T) {
	t.Parallel()
	site := plainSite(t)
	paths := []string{"/plain", "/second", "/text", "/data.xml", "/pic.svg", "/missing", "/framed"}
	origin := strings.Replace(site.URL, "127.0.0.1", "a.localhost", 1)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	for _, engine := range []string{browser.EngineShell, browser.EngineChrome} {
		s := create(t, d, body{"engine": engine})
		w := dial(t, s.CDP)
		for i, path := range paths {
			page, _ := w.page()
			if i > 0 {
				var made struct{ TargetID string }
				w.call("", "Target.createTarget", obj{"url": "about:blank"}, &made)
				page = w.attach(made.TargetID)
			}
			w.open(page, origin+path)
			w.eval(page, fmt.Sprintf(`sessionStorage.ss = %q; window.name = %[1]q`, path))
		}
		w.inFrame("/plain", `sessionStorage.ss = "framed"`)
		save(t, d, s.ID, "filesystem")
		for _, mode := range []string{"filesystem", "memory"} {
			r := create(t, d, body{"restore_from_session_id": s.ID, "engine": engine})
			w := dial(t, r.CDP)
			got := map[string]string{}
			for _, path := range paths {
				got[path] = w.eval(w.attach(w.tab(origin+path)), `sessionStorage.ss + " " + window.name`)
			}
			got["frame"] = w.inFrame("/plain", `sessionStorage.ss`)
			want := map[string]string{"frame": "framed"}
			for _, path := range paths {
				want[path] = path + " " + path
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-put +restored):\n%s", engine, diff)
			}
			if v := verified(t, d, r.ID); v.Verification != restore.VerificationOK || len(v.Differences) > 0 {
				t.Errorf("%s: %s: %+v", engine, v.Verification, v.Differences)
			}
			s = r
			save(t, d, s.ID, mode)
		}
	}
}

// inFrame evaluates an expression in the frame of the page at /framed.
func (w *wire) inFrame(contains, expression string) string {
	w.t.Helper()
	page := w.attach(w.tab("/framed"))
	w.call(page, "Page.enable", nil, nil)
	var frame string
	session := page
	daemon.Eventually(w.t, stepDeadline, "the frame can be read", func() bool {
		for _, t := range w.targets() {
			if t.Type == "iframe" && strings.Contains(t.URL, contains) {
				session, frame = w.attach(t.ID), t.ID
				return true
			}
		}
		var got struct {
			FrameTree struct {
				ChildFrames []struct{ Frame struct{ ID, URL string } }
			}
		}
		w.call(page, "Page.getFrameTree", nil, &got)
		for _, child := range got.FrameTree.ChildFrames {
			if strings.Contains(child.Frame.URL, contains) {
				frame = child.Frame.ID
			}
		}
		return frame != ""
	})
	var world struct{ ExecutionContextID int }
	w.call(session, "Page.createIsolatedWorld", obj{"frameId": frame}, &world)
	var got struct{ Result struct{ Value any } }
	w.call(session, "Runtime.evaluate", obj{"expression": expression, "contextId": world.ExecutionContextID}, &got)
	return fmt.Sprint(got.Result.Value)
}

// TestLostByRestore: if a restore cannot write a page's sessionStorage, the report says
// that the restore lost it, and does not blame the site. An item that is larger than
// Chrome allows makes the script fail at its first step.
func TestLostByRestore(t *testing.T) {
	t.Parallel()
	site := plainSite(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	s := create(t, d, body{"engine": browser.EngineShell})
	drive(t, puppeteer, s.CDP, visit(site.URL+"/plain"), evaluate(putPlain))
	snap := save(t, d, s.ID, "filesystem")
	archive := d.Must(t, http.StatusOK, http.MethodGet, "/v1/snapshots/"+snap.ID+"/archive", nil).Body
	a := imports(t, d, "stasis", rewritten(t, archive, func(doc *state.Document) {
		tooLarge := state.Item{Key: "large", Value: strings.Repeat("x", 11<<20)}
		area := &doc.Tabs[0].Session[0]
		area.Items = append([]state.Item{tooLarge}, area.Items...)
	}))
	for _, engine := range []string{browser.EngineShell, browser.EngineChrome} {
		r := create(t, d, body{"restore_from_environment_id": a.Snapshot.ID, "engine": engine})
		v := verified(t, d, r.ID)
		want := []state.Difference{{Component: state.ComponentSessionStorage, Origin: site.URL + "/", By: state.ByRestore, Missing: 2, Names: []string{"large", "ss"}}}
		if diff := cmp.Diff(want, v.Differences); diff != "" || v.Verification != restore.VerificationMismatch || len(v.Warnings) == 0 {
			t.Errorf("%s: %s, %q (-want +got):\n%s", engine, v.Verification, v.Warnings, diff)
		}
		if l := component(v.Components, state.ComponentSessionStorage, site.URL+"/"); l.Saved != 2 || l.Restored != 0 || l.Dropped != 2 || l.Reason.Code == "" {
			t.Errorf("%s: %+v", engine, l)
		}
		end(t, d, r.ID, "save_snapshot_mode=none")
	}
}

// TestPlainPageIsKeptOn: state that no client has read since a restore is also in the
// next save, three times in a row.
func TestPlainPageIsKeptOn(t *testing.T) {
	t.Parallel()
	site := plainSite(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	for _, engine := range []string{browser.EngineShell, browser.EngineChrome} {
		from := keepPlain(t, d, engine, site.URL+"/plain")
		for range 3 {
			r := create(t, d, body{"restore_from_session_id": from, "engine": engine})
			save(t, d, r.ID, "filesystem")
			from = r.ID
		}
		r := create(t, d, body{"restore_from_session_id": from, "engine": engine})
		if is := firstEval(t, rawCDP, r.CDP, "/plain", readPlain); is != hasPlain {
			t.Errorf("%s: after three saves: %s", engine, is)
		}
	}
}

// TestPlainPageBesideABlankOne: with a blank tab in front or behind, a plain page has
// its state. It also has it after a save in which a client closed the blank tab and did
// nothing else.
func TestPlainPageBesideABlankOne(t *testing.T) {
	t.Parallel()
	site := plainSite(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	for _, engine := range []string{browser.EngineShell, browser.EngineChrome} {
		s := create(t, d, body{"engine": engine})
		drive(t, puppeteer, s.CDP, visit(site.URL+"/plain"), evaluate(putPlain), openTab("about:blank"))
		save(t, d, s.ID, "filesystem")
		r := create(t, d, body{"restore_from_session_id": s.ID, "engine": engine})
		w := dial(t, r.CDP)
		w.call("", "Target.closeTarget", obj{"targetId": w.tab("about:blank")}, nil)
		save(t, d, r.ID, "filesystem")
		r = create(t, d, body{"restore_from_session_id": r.ID, "engine": engine})
		if is := firstEval(t, rawCDP, r.CDP, "/plain", readPlain); is != hasPlain {
			t.Errorf("%s: %s", engine, is)
		}
		end(t, d, r.ID, "save_snapshot_mode=none")
	}
}

// TestPlainPageGoesOn: the state of a plain tab is there in the next page of the same
// site, whatever a client first does with the tab.
func TestPlainPageGoesOn(t *testing.T) {
	t.Parallel()
	site := plainSite(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	for _, engine := range []string{browser.EngineShell, browser.EngineChrome} {
		from := keepPlain(t, d, engine, site.URL+"/plain")
		for name, touch := range map[string]func(w *wire, page string){
			"reload": func(w *wire, page string) {
				w.call(page, "Page.enable", nil, nil)
				w.call(page, "Page.reload", nil, nil)
				w.await(page, "Page.loadEventFired")
			},
			"next page": func(w *wire, page string) { w.open(page, site.URL+"/second") },
		} {
			r := create(t, d, body{"restore_from_session_id": from, "engine": engine})
			w := dial(t, r.CDP)
			page := w.attach(w.tab("/plain"))
			touch(w, page)
			if is := w.eval(page, readPlain); is != hasPlain {
				t.Errorf("%s: %s: %s", engine, name, is)
			}
			end(t, d, r.ID, "save_snapshot_mode=none")
		}
	}
}
