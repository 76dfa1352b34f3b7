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

// paperPath is the path of a PDF.
const paperPath = "/paper.pdf"

// rawCDP is a client without a library.
const rawCDP = "raw CDP"

// plainSite serves documents without scripts.
func plainSite(t testing.TB) *httptest.Server {
	t.Helper()
	kinds := map[string]string{
		"/plain":    "text/html",
		"/second":   "text/html",
		"/third":    "text/html",
		"/fourth":   "text/html",
		"/text":     "text/plain",
		"/data.xml": "text/xml",
		"/pic.svg":  "image/svg+xml",
		paperPath:   "application/pdf",
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
		case kind == "application/pdf":
			defer io.WriteString(w, onePage) //nolint:errcheck // the browser has gone
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

// newTab opens a blank tab and attaches to it.
func (w *wire) newTab() string {
	w.t.Helper()
	var made struct{ TargetID string }
	w.call("", "Target.createTarget", obj{"url": "about:blank"}, &made)
	return w.attach(made.TargetID)
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

// keepUnread creates a session with a plain tab and a blank one in front, puts state into
// the plain tab, and saves the session. It then restores and saves the environment
// without reading that tab: first a client closes the blank tab and does nothing else,
// then there is no client. It returns the last snapshot.
func keepUnread(t testing.TB, d *daemon.Daemon, engine, url string) string {
	t.Helper()
	s := create(t, d, body{"engine": engine})
	visitPlain(t, s, url).call("", "Target.createTarget", obj{"url": "about:blank"}, nil)
	from := save(t, d, s.ID, "filesystem").ID
	unread := 2
	if storetest.Long() {
		unread = 3
	}
	for n := range unread {
		r := create(t, d, body{"restore_from_environment_id": from, "engine": engine})
		if n == 0 {
			w := dial(t, r.CDP)
			w.call("", "Target.closeTarget", obj{"targetId": w.tab("about:blank")}, nil)
		}
		from = save(t, d, r.ID, "filesystem").ID
	}
	return from
}

// plainRestore is a restore of a plain page: its path, the engines that saved and restore
// it, and the client that reads it.
type plainRestore struct{ path, saved, running, client string }

// plainRestores returns the restores of TestPlainPage: those by a daemon without spares,
// and those by a daemon that keeps a spare of an engine from its first session on. The
// short form has each client, and each pair of a path and an engine, and of two engines.
func plainRestores() (without, with []plainRestore) {
	const chrome, shell = browser.EngineChrome, browser.EngineShell
	if !storetest.Long() {
		return []plainRestore{{restore.PathCold, shell, chrome, rawCDP}}, []plainRestore{
			{restore.PathCold, chrome, shell, playwright}, {restore.PathWarm, shell, shell, puppeteer}, {restore.PathWarm, chrome, chrome, rawCDP},
		}
	}
	with = []plainRestore{{restore.PathCold, shell, shell, rawCDP}}
	for _, saved := range []string{chrome, shell} {
		for _, client := range []string{rawCDP, puppeteer, playwright} {
			without = append(without, plainRestore{restore.PathCold, saved, shell, client})
			with = append(with, plainRestore{restore.PathWarm, saved, shell, client})
		}
		without = append(without, plainRestore{restore.PathCold, saved, chrome, rawCDP})
		with = append(with, plainRestore{restore.PathWarm, saved, chrome, rawCDP})
	}
	return without, with
}

// TestPlainPage: a page without scripts has its sessionStorage and window.name at a
// client's first command, whatever engines saved and restored it, with and without a
// spare. The environment was saved again twice, in the long form three times, and no
// client had read the page: once with a blank tab that a client closed, then alone. The
// long form tries all combinations of engines, clients and paths.
func TestPlainPage(t *testing.T) {
	t.Parallel()
	site := plainSite(t)
	dir := daemon.DataDir(t)
	d := daemon.Start(t, daemon.Options{Dir: dir, NoSpares: true})
	from := map[string]string{}
	for _, saved := range []string{browser.EngineChrome, browser.EngineShell} {
		from[saved] = keepUnread(t, d, saved, site.URL+"/plain")
	}
	check := func(c plainRestore) {
		t.Helper()
		r := create(t, d, body{"restore_from_environment_id": from[c.saved], "engine": c.running})
		if r.Restored.Path != c.path {
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
	without, with := plainRestores()
	for _, c := range without {
		check(c)
	}
	lostByRestore(t, d, site.URL+"/", from[browser.EngineShell])
	d.Stop(t)
	d = daemon.Start(t, daemon.Options{Dir: dir, ShellSpare: true})
	for _, c := range with {
		if c.path == restore.PathWarm {
			sparesReady(t, d, 2)
		}
		check(c)
	}
}

// TestPlainDocuments: every tab of an environment has its state, in front or behind, in
// every kind of document, and in a frame of another site. A client that first reloads a
// tab, or opens the next page of the same site in it, finds the state there. Chrome also
// restores a tab with a PDF. The environment is restored from the files of both kinds of
// snapshots. The long form tries each engine with each kind.
func TestPlainDocuments(t *testing.T) {
	t.Parallel()
	site := plainSite(t)
	origin := strings.Replace(site.URL, "127.0.0.1", "a.localhost", 1)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	modes := map[string][]string{browser.EngineShell: {"memory"}, browser.EngineChrome: {"filesystem"}}
	if storetest.Long() {
		modes = map[string][]string{browser.EngineShell: {"memory", "filesystem"}, browser.EngineChrome: {"memory", "filesystem"}}
	}
	for engine, modes := range modes {
		s := create(t, d, body{"engine": engine})
		w := dial(t, s.CDP)
		page, _ := w.page()
		if engine == browser.EngineChrome { // the headless shell has no viewer
			w.openPDF(w.newTab(), origin+paperPath)
		}
		for i, path := range []string{"/third", "/fourth", "/plain", "/second", "/text", "/data.xml", "/pic.svg", "/missing", "/framed"} {
			if i > 0 {
				page = w.newTab()
			}
			w.open(page, origin+path)
			w.eval(page, fmt.Sprintf(`sessionStorage.ss = %q; window.name = %[1]q`, path))
		}
		w.inFrame("/plain", `sessionStorage.ss = "framed"`)
		for _, mode := range modes {
			if saved := save(t, d, s.ID, mode); len(saved.Warnings) > 0 {
				t.Errorf("%s, %s: the save warns: %q", engine, mode, saved.Warnings)
			}
			r := create(t, d, body{"restore_from_session_id": s.ID, "engine": engine, "enable_memory_snapshot": false})
			checkDocuments(t, d, r, origin, engine+", "+mode)
			s = r
		}
		end(t, d, s.ID, "save_snapshot_mode=none")
	}
}

// openPDF opens a PDF and waits for the frame in which Chrome's viewer draws it. This
// frame never answers requests for its storage.
func (w *wire) openPDF(page, url string) {
	w.t.Helper()
	w.call(page, "Page.navigate", obj{"url": url}, nil)
	daemon.Eventually(w.t, stepDeadline, "the viewer's frame that has the PDF", func() bool {
		return slices.ContainsFunc(w.targets(), func(i targetInfo) bool { return i.Type == "iframe" && i.URL == url })
	})
}

// checkDocuments checks the tabs of a session that TestPlainDocuments restored.
func checkDocuments(t *testing.T, d *daemon.Daemon, r created, origin, what string) {
	t.Helper()
	w := dial(t, r.CDP)
	reloaded := w.attach(w.tab(origin + "/third"))
	w.reload(reloaded)
	next := w.attach(w.tab(origin + "/fourth"))
	w.open(next, origin+"/third")
	const read = `sessionStorage.ss + " " + window.name`
	got := map[string]string{
		"reload":    w.eval(reloaded, read),
		"next page": w.eval(next, read),
		"frame":     w.inFrame("/plain", `sessionStorage.ss`),
	}
	want := map[string]string{"reload": "/third /third", "next page": "/fourth /fourth", "frame": "framed"}
	for _, path := range []string{"/plain", "/second", "/text", "/data.xml", "/pic.svg", "/missing", "/framed"} {
		got[path], want[path] = w.eval(w.attach(w.tab(origin+path)), read), path+" "+path
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-put +restored):\n%s", what, diff)
	}
	if r.Engine == browser.EngineChrome {
		w.tab(paperPath)
	}
	if v := verified(t, d, r.ID); v.Verification != restore.VerificationOK || len(v.Differences) > 0 {
		t.Errorf("%s: %s: %+v", what, v.Verification, v.Differences)
	}
	w.open(next, origin+"/fourth") // for the next save
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

// If a restore cannot write a page's sessionStorage, the report says that the restore lost
// it, and does not blame the site. An item that is larger than Chrome allows makes the
// script fail at its first step. The long form restores in both engines.
func lostByRestore(t *testing.T, d *daemon.Daemon, origin, snapshot string) {
	archive := d.Must(t, http.StatusOK, http.MethodGet, "/v1/snapshots/"+snapshot+"/archive", nil).Body
	a := imports(t, d, "stasis", rewritten(t, archive, func(doc *state.Document) {
		tooLarge := state.Item{Key: "large", Value: strings.Repeat("x", 11<<20)}
		area := &doc.Tabs[0].Session[0]
		area.Items = append([]state.Item{tooLarge}, area.Items...)
	}))
	engines := []string{browser.EngineShell}
	if storetest.Long() {
		engines = append(engines, browser.EngineChrome)
	}
	for _, engine := range engines {
		r := create(t, d, body{"restore_from_environment_id": a.Snapshot.ID, "engine": engine})
		v := verified(t, d, r.ID)
		want := []state.Difference{{Component: state.ComponentSessionStorage, Origin: origin, By: state.ByRestore, Missing: 2, Names: []string{"large", "ss"}}}
		if diff := cmp.Diff(want, v.Differences); diff != "" || v.Verification != restore.VerificationMismatch || len(v.Warnings) == 0 {
			t.Errorf("%s: %s, %q (-want +got):\n%s", engine, v.Verification, v.Warnings, diff)
		}
		if l := component(v.Components, state.ComponentSessionStorage, origin); l.Saved != 2 || l.Restored != 0 || l.Dropped != 2 || l.Reason.Code == "" {
			t.Errorf("%s: %+v", engine, l)
		}
		end(t, d, r.ID, "save_snapshot_mode=none")
	}
}
