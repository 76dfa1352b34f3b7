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
	"github.com/stasisd/stasis/snapshot/storetest"
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
	visitPlain(t, s, url)
	save(t, d, s.ID, "filesystem")
	return s.ID
}

// visitPlain opens a plain page in a session's tab and puts state into the tab.
func visitPlain(t testing.TB, s created, url string) *wire {
	t.Helper()
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, url)
	w.eval(page, putPlain)
	return w
}

// plainRestore is a restore of a plain page: its path, the engines that saved and restore
// it, and the client that reads it.
type plainRestore struct{ path, saved, running, client string }

// plainRestores returns the restores of TestPlainPage. The short form has each client, and
// each pair of a path and an engine, and of two engines.
func plainRestores() (all []plainRestore) {
	const chrome, shell = browser.EngineChrome, browser.EngineShell
	if !storetest.Long() {
		return []plainRestore{
			{restore.PathCold, chrome, shell, rawCDP}, {restore.PathCold, shell, chrome, rawCDP},
			{restore.PathWarm, shell, shell, puppeteer}, {restore.PathWarm, chrome, chrome, rawCDP}, {restore.PathWarm, chrome, shell, playwright},
		}
	}
	for _, path := range []string{restore.PathCold, restore.PathWarm} {
		for _, saved := range []string{chrome, shell} {
			for _, client := range []string{rawCDP, puppeteer, playwright} {
				all = append(all, plainRestore{path, saved, shell, client})
			}
			all = append(all, plainRestore{path, saved, chrome, rawCDP})
		}
	}
	return all
}

// TestPlainPage: a page without scripts has its sessionStorage and window.name at a
// client's first command, whatever engines saved and restored it, with and without a
// spare. The long form tries all combinations.
func TestPlainPage(t *testing.T) {
	t.Parallel()
	site := plainSite(t)
	dir := daemon.DataDir(t)
	d := daemon.Start(t, daemon.Options{Dir: dir, NoSpares: true})
	from := map[string]string{}
	for _, saved := range []string{browser.EngineChrome, browser.EngineShell} {
		from[saved] = keepPlain(t, d, saved, site.URL+"/plain")
	}
	path := restore.PathCold
	for _, c := range plainRestores() {
		if path != c.path {
			path = c.path
			d.Stop(t)
			d = daemon.Start(t, daemon.Options{Dir: dir, ShellSpare: true})
			// The daemon keeps a spare of the shell once a session has used the shell.
			end(t, d, create(t, d, body{"engine": browser.EngineShell}).ID, "save_snapshot_mode=none")
		}
		if path == restore.PathWarm {
			sparesReady(t, d, 2)
		}
		r := create(t, d, body{"restore_from_session_id": from[c.saved], "engine": c.running})
		if r.Restored.Path != path {
			t.Errorf("%+v: the restore path was %s: %s", c, r.Restored.Path, r.Restored.FallbackReason)
		}
		if is := firstEval(t, c.client, r.CDP, "/plain", readPlain); is != hasPlain {
			t.Errorf("%+v: %s", c, is)
		}
		if v := verified(t, d, r.ID); v.Verification != restore.VerificationOK || len(v.Differences) > 0 {
			t.Errorf("%+v: %s: %+v", c, v.Verification, v.Differences)
		}
		end(t, d, r.ID, "save_snapshot_mode=none")
	}
}

// TestPlainDocuments: every tab of an environment has its state, in front or behind, in
// every kind of document, and in a frame of another site. It is restored from the files
// of both kinds of snapshots. The long form tries each engine with each kind.
func TestPlainDocuments(t *testing.T) {
	t.Parallel()
	site := plainSite(t)
	paths := []string{"/plain", "/second", "/text", "/data.xml", "/pic.svg", "/missing", "/framed"}
	origin := strings.Replace(site.URL, "127.0.0.1", "a.localhost", 1)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	modes := map[string][]string{browser.EngineShell: {"filesystem"}, browser.EngineChrome: {"memory"}}
	if storetest.Long() {
		modes = map[string][]string{browser.EngineShell: {"memory", "filesystem"}, browser.EngineChrome: {"memory", "filesystem"}}
	}
	for engine, modes := range modes {
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
		for _, mode := range modes {
			save(t, d, s.ID, mode)
			r := create(t, d, body{"restore_from_session_id": s.ID, "engine": engine, "enable_memory_snapshot": false})
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
				t.Errorf("%s, %s (-put +restored):\n%s", engine, mode, diff)
			}
			if v := verified(t, d, r.ID); v.Verification != restore.VerificationOK || len(v.Differences) > 0 {
				t.Errorf("%s, %s: %s: %+v", engine, mode, v.Verification, v.Differences)
			}
			s = r
		}
		end(t, d, s.ID, "save_snapshot_mode=none")
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
	visitPlain(t, s, site.URL+"/plain")
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
// next save, twice in a row; in the long form three times.
func TestPlainPageIsKeptOn(t *testing.T) {
	t.Parallel()
	site := plainSite(t)
	saves := 2
	if storetest.Long() {
		saves = 3
	}
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	for _, engine := range []string{browser.EngineShell, browser.EngineChrome} {
		from := keepPlain(t, d, engine, site.URL+"/plain")
		for range saves {
			r := create(t, d, body{"restore_from_session_id": from, "engine": engine})
			save(t, d, r.ID, "filesystem")
			from = r.ID
		}
		r := create(t, d, body{"restore_from_session_id": from, "engine": engine})
		if is := firstEval(t, rawCDP, r.CDP, "/plain", readPlain); is != hasPlain {
			t.Errorf("%s: after %d saves: %s", engine, saves, is)
		}
		end(t, d, r.ID, "save_snapshot_mode=none")
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
		visitPlain(t, s, site.URL+"/plain").call("", "Target.createTarget", obj{"url": "about:blank"}, nil)
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
// site, whatever a client first does with the tab: a reload in one tab, a navigation in
// another.
func TestPlainPageGoesOn(t *testing.T) {
	t.Parallel()
	site := plainSite(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	for _, engine := range []string{browser.EngineShell, browser.EngineChrome} {
		s := create(t, d, body{"engine": engine})
		w := visitPlain(t, s, site.URL+"/plain")
		var made struct{ TargetID string }
		w.call("", "Target.createTarget", obj{"url": "about:blank"}, &made)
		text := w.attach(made.TargetID)
		w.open(text, site.URL+"/text")
		w.eval(text, putPlain)
		save(t, d, s.ID, "filesystem")
		r := create(t, d, body{"restore_from_session_id": s.ID, "engine": engine})
		w = dial(t, r.CDP)
		reloaded := w.attach(w.tab("/plain"))
		w.call(reloaded, "Page.enable", nil, nil)
		w.call(reloaded, "Page.reload", nil, nil)
		w.await(reloaded, "Page.loadEventFired")
		next := w.attach(w.tab("/text"))
		w.open(next, site.URL+"/second")
		for name, page := range map[string]string{"reload": reloaded, "next page": next} {
			if is := w.eval(page, readPlain); is != hasPlain {
				t.Errorf("%s: %s: %s", engine, name, is)
			}
		}
		end(t, d, r.ID, "save_snapshot_mode=none")
	}
}
