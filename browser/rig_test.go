package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"go.uber.org/goleak"

	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/state"
)

// The test binary is also the warden, as the daemon's binary is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == launch.WardenArg {
		os.Exit(launch.WardenMain(os.Args[2:]))
	}
	goleak.VerifyTestMain(m)
}

// waitTimeout is how long a test waits for a condition before it fails.
const waitTimeout = 2 * time.Minute

// long reports whether tests run in their long form (make test-long).
func long() bool { return os.Getenv("STASIS_LONG") != "" }

// testUIDs is outside the ranges of daemons and other tests.
var testUIDs = launch.UIDRange{Base: 330000, Count: 100}

// rig starts Chromes for one test.
type rig struct {
	*Starter
	t      *testing.T
	dirs   int
	engine string // of Chromes whose test names none
}

func newRig(t *testing.T) *rig {
	t.Helper()
	// Not t.TempDir: other users cannot enter its parents, and its path is long.
	root, err := os.MkdirTemp("", "b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(root, 0o711); err != nil {
		t.Fatal(err)
	}
	l, err := launch.New(launch.Config{Root: root + "/run", UIDs: testUIDs})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Starter: NewStarter(l, time.Now), t: t}
	r.settings.Store(startSettings(r))
	return r
}

// newRigOfEither is newRig for a test whose subject is the same in both engines. It starts
// the shell, which takes half the processor time. In the long form it starts full Chrome.
func newRigOfEither(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	if !long() {
		r.engine = EngineShell
	}
	return r
}

// startSettings returns the settings with which Chromes with gates start. The first rig
// learns them for all.
var startSettings = func() func(r *rig) *[]byte {
	var once sync.Once
	var settings *[]byte
	return func(r *rig) *[]byte {
		once.Do(func() {
			r.learnSettings(r.t.Context())
			if settings = r.settings.Load(); settings == nil {
				r.t.Errorf("the settings of an empty profile: %s", r.whyNoGates(Options{Gates: true}))
			}
		})
		return settings
	}
}()

func (r *rig) dir() *Dir {
	r.t.Helper()
	r.dirs++
	d, err := r.Launcher.NewDir(fmt.Sprint("s", r.dirs))
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

func (r *rig) ends(b *Browser) *Browser {
	r.t.Cleanup(func() {
		if err := b.Kill(context.Background()); err != nil {
			r.t.Error(err)
		}
	})
	return b
}

func (r *rig) fresh() *Browser {
	r.t.Helper()
	b, err := r.Fresh(within(r.t), r.dir(), Options{Engine: r.engine})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.ends(b)
}

func (r *rig) shell() *Browser {
	r.t.Helper()
	b, err := r.Fresh(within(r.t), r.dir(), Options{Engine: EngineShell})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.ends(b)
}

func (r *rig) restored(dir *Dir, doc state.Document, o Options) (*Browser, []state.Component) {
	r.t.Helper()
	o.Engine = cmp.Or(o.Engine, r.engine)
	o.Gates = true
	b, report, err := r.Restored(within(r.t), dir, doc, o)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.ends(b), report
}

// copied copies a frozen Chrome's environment into a separate directory, as unpacking an
// archive would.
func (r *rig) copied(b *Browser) *Dir {
	r.t.Helper()
	files, err := b.Environment(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	d := r.dir()
	for _, f := range files {
		to := filepath.Join(d.Profile(), f.Name)
		body, err := contentOf(f)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o700)
		}
		if err == nil {
			err = os.WriteFile(to, body, 0o600)
		}
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return d
}

// contentOf returns the content that a file has in an archive.
func contentOf(f profile.File) ([]byte, error) {
	if f.Data != nil {
		return f.Data, nil
	}
	return os.ReadFile(f.Path)
}

// written waits until Chrome has written a URL into its session files, which may take 2.5
// s.
func (r *rig) written(b *Browser, url string) {
	r.t.Helper()
	await(r.t, url+" is in the session files", func() bool {
		files, err := filepath.Glob(filepath.Join(b.dir.Profile(), profile.Folder(b.dir.Profile()), "Sessions", "Session_*"))
		if err != nil {
			r.t.Fatal(err)
		}
		for _, file := range files {
			if body, err := os.ReadFile(file); err == nil && strings.Contains(string(body), url) {
				return true
			}
		}
		return false
	})
}

// crashed captures the environment, copies it and kills its Chrome.
func (r *rig) crashed(b *Browser) (state.Document, *Dir) {
	r.t.Helper()
	doc, err := b.Capture(within(r.t))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := b.Freeze(within(r.t)); err != nil {
		r.t.Fatal(err)
	}
	dir := r.copied(b)
	if err := b.Kill(within(r.t)); err != nil {
		r.t.Fatal(err)
	}
	return doc, dir
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	t.Cleanup(cancel)
	return ctx
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx := within(t)
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// site is a web site without behaviour that records its requests. It does not answer
// requests for /never.
type site struct {
	url   string
	pages map[string]string // by path; set before Chrome's first request
	mu    sync.Mutex
	log   []string // path and Cookie header of each request
}

func newSite(t *testing.T, pages map[string]string) *site {
	s := &site{pages: pages}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/favicon.ico" {
			http.NotFound(w, req)
			return
		}
		s.mu.Lock()
		s.log = append(s.log, req.URL.Path+" "+req.Header.Get("Cookie"))
		s.mu.Unlock()
		if req.URL.Path == "/never" {
			<-req.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Cache-Control", "no-store")
		if strings.HasSuffix(req.URL.Path, ".js") {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = fmt.Fprint(w, s.pages[req.URL.Path])
			return
		}
		_, _ = fmt.Fprintf(w, "<!doctype html><title>title of %s</title><body style='background:red'>%s", req.URL.Path, s.pages[req.URL.Path])
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *site) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

// page waits for a tab with this URL and returns its ID.
func (r *rig) page(b *Browser, url string) (id target.ID) {
	r.t.Helper()
	await(r.t, "a tab at "+url, func() bool {
		pages, err := b.Pages(r.t.Context())
		if err != nil {
			r.t.Fatal(err)
		}
		for _, p := range pages {
			if p.URL == url {
				id = target.ID(p.ID)
				return true
			}
		}
		return false
	})
	return id
}

// eval runs a script in the loaded tab with this URL and returns its value as JSON.
func (r *rig) eval(b *Browser, url, script string) string {
	r.t.Helper()
	return r.evalIn(b, r.page(b, url), url, script)
}

// evalFrame is eval in a frame with its own process.
func (r *rig) evalFrame(b *Browser, url, script string) string {
	r.t.Helper()
	var id target.ID
	await(r.t, "a frame at "+url, func() bool {
		res, err := cdp.Call(r.t.Context(), b.driver, target.GetTargets, target.GetTargetsParams{})
		if err != nil {
			r.t.Fatal(err)
		}
		for _, t := range res.TargetInfos {
			if t.Type == "iframe" && t.URL == url {
				id = t.TargetID
				return true
			}
		}
		return false
	})
	return r.evalIn(b, id, url, script)
}

func (r *rig) evalIn(b *Browser, id target.ID, url, script string) string {
	r.t.Helper()
	ctx := within(r.t)
	yes := true
	at, err := cdp.Call(ctx, b.driver, target.AttachToTarget, target.AttachToTargetParams{TargetID: id, Flatten: &yes})
	if err != nil {
		r.t.Fatal(err)
	}
	s := b.driver.Session(at.SessionID)
	defer func() {
		_, _ = cdp.Call(ctx, b.driver, target.DetachFromTarget, target.DetachFromTargetParams(at))
	}()
	var got json.RawMessage
	var lost error
	run := func(script string) bool {
		res, err := cdp.Call(ctx, s, runtime.Evaluate, runtime.EvaluateParams{Expression: script, ReturnByValue: &yes, AwaitPromise: &yes})
		if err != nil {
			lost = err // its document may be being replaced
			return false
		}
		if res.ExceptionDetails != nil {
			r.t.Fatalf("%s: %s", script, res.ExceptionDetails.Exception.Description)
		}
		got = json.RawMessage(res.Result.Value)
		return true
	}
	await(r.t, url+" is loaded", func() bool {
		return run(fmt.Sprintf(`location.href === %q && document.readyState === "complete"`, url)) && string(got) == "true"
	})
	if !run(script) {
		r.t.Fatalf("%s at %s: %v", script, url, lost)
	}
	return strings.Trim(string(got), `"`)
}

// open opens a tab and waits until it exists.
func (r *rig) open(b *Browser, url string) {
	r.t.Helper()
	if err := b.Open(within(r.t), url); err != nil {
		r.t.Fatal(err)
	}
	r.eval(b, url, "1")
}

// line returns a report line.
func line(report []state.Component, name, origin string) state.Component {
	for _, c := range report {
		if c.Name == name && (origin == "" || c.Origin == origin) {
			return c
		}
	}
	return state.Component{}
}
