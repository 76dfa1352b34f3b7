package restore

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// fakeChrome is a Chrome that can be a spare, a standby, parked or running.
type fakeChrome struct {
	browsers.Chrome     // methods that the tests do not call
	dir                 *browser.Dir
	fails               error
	killed              bool
	secondProfileReason string
	egress              browser.Egress
}

func (c *fakeChrome) Engine() string                   { return browser.EngineChrome }
func (c *fakeChrome) Version() string                  { return "156.0.1.2" }
func (c *fakeChrome) Dir() *browser.Dir                { return c.dir }
func (c *fakeChrome) SecondProfileReason() string      { return c.secondProfileReason }
func (c *fakeChrome) Done() <-chan struct{}            { return nil }
func (c *fakeChrome) Passkeys() (state.Passkeys, bool) { return state.Passkeys{}, false }
func (c *fakeChrome) Thaw(context.Context) error       { return c.fails }
func (c *fakeChrome) Kill(context.Context) error       { c.killed = true; return nil }

func (c *fakeChrome) Egress() browser.Egress           { return c.egress }
func (c *fakeChrome) LimitEgress(browser.Egress) error { return nil }
func (c *fakeChrome) SetLimits(browser.Limits) error   { return nil }

func (c *fakeChrome) Fresh(context.Context, browser.Options) (browsers.Chrome, error) {
	return c, c.fails
}

func (c *fakeChrome) Restored(context.Context, state.Document, browser.Options) (browsers.Chrome, []state.Component, error) {
	return c, nil, c.fails
}

func (c *fakeChrome) Activate(context.Context) (browsers.Chrome, []state.Component, error) {
	return c, nil, c.fails
}

// fakeBrowsers starts Chromes. fails is the error of each start, gatesFail that of a
// restore in a Chrome with gates.
type fakeBrowsers struct {
	launcher         *launch.Launcher
	names            []string
	all              []*fakeChrome
	fails, gatesFail error
	gates            []bool // of each spare
}

func (b *fakeBrowsers) start(dir *browser.Dir) *fakeChrome {
	c := &fakeChrome{dir: dir, fails: b.fails}
	b.all = append(b.all, c)
	return c
}

func (b *fakeBrowsers) Yields(string) bool { return false }

func (b *fakeBrowsers) NewDir() (*browser.Dir, error) {
	name := b.names[0]
	b.names = b.names[1:]
	return b.launcher.NewDir(name)
}

func (b *fakeBrowsers) Spare(_ context.Context, dir *browser.Dir, o browser.Options) (browsers.Spare, error) {
	b.gates = append(b.gates, o.Gates)
	c := b.start(dir)
	if o.Gates && b.gatesFail != nil {
		c.fails = b.gatesFail
	}
	return c, nil
}

func (b *fakeBrowsers) Fresh(_ context.Context, dir *browser.Dir, _ browser.Options) (browsers.Chrome, error) {
	return b.start(dir), b.fails
}

func (b *fakeBrowsers) Restored(_ context.Context, dir *browser.Dir, _ state.Document, _ browser.Options) (browsers.Chrome, []state.Component, error) {
	return b.start(dir), nil, b.fails
}

func (b *fakeBrowsers) Standby(_ context.Context, dir *browser.Dir, _ state.Document, _ browser.Options) (browsers.Standby, error) {
	return b.start(dir), b.fails
}

// fakeReady has one Chrome of each kind that is not nil.
type fakeReady struct {
	parked  *Parked
	standby *Standby
	spare   *Spare
}

func (f *fakeReady) TakeParked(_ string, fits func(*Parked) string) (p *Parked, ok bool, why string) {
	if f.parked == nil {
		return nil, false, "none is parked"
	}
	if why := fits(f.parked); why != "" {
		return nil, false, why
	}
	return f.parked, true, ""
}

func (f *fakeReady) TakeStandby(_, _ string, fits func(*Standby) string) (p *Standby, ok bool, why string) {
	if f.standby == nil {
		return nil, false, ""
	}
	if why := fits(f.standby); why != "" {
		return nil, false, why
	}
	return f.standby, true, ""
}

func (f *fakeReady) KeepsSpares(string) bool         { return f.spare != nil }
func (f *fakeReady) TakeSpare(string) (*Spare, bool) { return f.spare, f.spare != nil }
func (f *fakeReady) FreeCapacity(context.Context)    {}

// fakeArchives has one environment. releases counts the calls of Release.
type fakeArchives struct {
	Archives // methods that the tests do not call
	doc      state.Document
	releases int
}

func (f *fakeArchives) Open(context.Context, profiles.Snapshot) (snapshot.Snapshot, error) {
	return snapshot.Snapshot{}, nil
}

func (f *fakeArchives) Readable(snapshot.Snapshot) error { return nil }

func (f *fakeArchives) Unpack(context.Context, snapshot.Snapshot, string, *TailFolder) (UnpackResult, error) {
	return UnpackResult{Document: f.doc, Entries: 3, Release: func() { f.releases++ }}, nil
}

func (f *fakeArchives) Filter(context.Context, string, state.Selection) ([]state.Component, error) {
	return nil, nil
}

func (f *fakeArchives) SaveReport(profiles.Snapshot) SaveReport {
	return SaveReport{Components: []state.Component{{Name: state.ComponentCookies, Saved: 5}}}
}

// Start takes the quickest path that can serve the request. If that fails it takes a
// slower one, and the report says which and why. A Chrome that failed is ended.
func TestPaths(t *testing.T) {
	died := fault.New(fault.BrowserFailed, "fake", "it died")
	withStandby := func(fails error) func(*fakeBrowsers, *fakeReady, *browser.Dir) *fakeChrome {
		return func(_ *fakeBrowsers, f *fakeReady, dir *browser.Dir) *fakeChrome {
			c := &fakeChrome{dir: dir, fails: fails}
			f.standby = &Standby{Standby: c, engine: browser.EngineChrome, clear: func(*browser.Dir) {}}
			return c
		}
	}
	withParked := func(fails error) func(*fakeBrowsers, *fakeReady, *browser.Dir) *fakeChrome {
		return func(_ *fakeBrowsers, f *fakeReady, dir *browser.Dir) *fakeChrome {
			c := &fakeChrome{dir: dir, fails: fails}
			f.parked = &Parked{Chrome: c, Clear: func(*browser.Dir) {}}
			return c
		}
	}
	withSpare := func(fails error) func(*fakeBrowsers, *fakeReady, *browser.Dir) *fakeChrome {
		return func(_ *fakeBrowsers, f *fakeReady, dir *browser.Dir) *fakeChrome {
			c := &fakeChrome{dir: dir, fails: fails}
			f.spare = &Spare{Spare: c, clear: func(*browser.Dir) {}}
			return c
		}
	}
	denyHost := func(q *Request) { q.Egress.Lists = []egress.List{{DenyHosts: []string{"telemetry.example"}}} }
	for name, test := range map[string]struct {
		ready  func(*fakeBrowsers, *fakeReady, *browser.Dir) *fakeChrome
		change func(*Request)
		path   string
		why    string
	}{
		"parked":               {withParked(nil), nil, PathParked, ""},
		"parked, does not run": {withParked(died), nil, PathCold, "did not answer after it was thawed"},
		"parked, files asked":  {withParked(nil), func(q *Request) { q.AllowMemory = false }, PathCold, ""},
		"parked, does not fit": {withParked(nil), func(q *Request) { q.RestoreTabs = false }, PathCold, "restore_tabs is false"},
		"standby":              {withStandby(nil), nil, PathStandby, "none is parked"},
		"standby, dies":        {withStandby(died), nil, PathCold, "the standby Chrome failed: it died"},
		"parked, other hosts":  {withParked(nil), denyHost, PathCold, "the parked Chrome ran with other hosts in its egress"},
		"standby, other hosts": {withStandby(nil), denyHost, PathCold, "the standby Chrome ran with other hosts in its egress"},
		"spare":                {withSpare(nil), nil, PathWarm, "none is parked"},
		"spare, dies":          {withSpare(died), nil, PathCold, "the spare Chrome failed: it died"},
		"spare, as a profile": {func(b *fakeBrowsers, f *fakeReady, dir *browser.Dir) *fakeChrome {
			c := withSpare(nil)(b, f, dir)
			c.secondProfileReason = "it has extensions"
			return c
		}, nil, PathWarm, "none is parked; it has extensions"},
		"nothing ready": {nil, nil, PathCold, "none is parked"},
		"gates fail": {func(b *fakeBrowsers, _ *fakeReady, _ *browser.Dir) *fakeChrome {
			b.gatesFail = died
			return nil
		}, nil, PathCold, "the empty Chrome failed: it died"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := launch.New(launch.Config{Binary: "/bin/true", Root: t.TempDir(), UIDs: launch.UIDRange{Base: 320500, Count: 3}})
			if err != nil {
				t.Fatal(err)
			}
			b, ready, archives := &fakeBrowsers{launcher: l, names: []string{"a", "b", "c"}}, &fakeReady{}, &fakeArchives{}
			archives.doc = state.Document{Datadir: state.DatadirClean, Complete: true}
			var kept *fakeChrome
			if test.ready != nil {
				dir, err := b.NewDir()
				if err != nil {
					t.Fatal(err)
				}
				kept = test.ready(b, ready, dir)
			}
			r := New(Config{Now: time.Now, Log: slog.New(slog.DiscardHandler)}, b, ready, archives, nil)
			q := Request{Engine: browser.EngineChrome, AllowMemory: true, RestoreTabs: true}
			if test.change != nil {
				test.change(&q)
			}
			s, err := r.Start(t.Context(), q, Environment{UserID: "u", Source: &Source{Type: SourceUserDefault, ID: "u"},
				Snapshot: &profiles.Snapshot{ID: "s", Mode: string(snapshot.Memory), Datadir: string(state.DatadirClean)}})
			if err != nil {
				t.Fatal(err)
			}
			if s.Report.Path != test.path || !strings.Contains(s.Report.FallbackReason, test.why) || test.why == "" && s.Report.FallbackReason != "" {
				t.Errorf("%s: %q", s.Report.Path, s.Report.FallbackReason)
			}
			if used := kept != nil && s.Chrome == browsers.Chrome(kept); used != (kept != nil && test.path != PathCold) {
				t.Errorf("the session uses the Chrome that was kept ready: %t", used)
			}
			if kept != nil && kept.fails != nil && !kept.killed {
				t.Error("a Chrome that failed was not ended")
			}
			if s.Chrome.(*fakeChrome).killed {
				t.Error("the session's Chrome was ended")
			}
			// A standby's archive was unpacked when the standby was started.
			if unpacked := s.Report.Path == PathCold || s.Report.Path == PathWarm; (archives.releases > 0) != unpacked {
				t.Errorf("Release was called %d times", archives.releases)
			}
		})
	}
}

// The first spare that is kept ready has no gates, so that it is ready sooner.
func TestFirstSpareHasNoGates(t *testing.T) {
	l, err := launch.New(launch.Config{Binary: "/bin/true", Root: t.TempDir(), UIDs: launch.UIDRange{Base: 320500, Count: 9}})
	if err != nil {
		t.Fatal(err)
	}
	b := &fakeBrowsers{launcher: l, names: []string{"a", "b", "c", "d", "e", "f", "g"}}
	r := New(Config{Now: time.Now, Log: slog.New(slog.DiscardHandler)}, b, &fakeReady{}, &fakeArchives{}, nil)
	var gates []bool
	spare := func() {
		t.Helper()
		if _, err := r.StartSpare(t.Context(), browser.EngineChrome); err != nil {
			t.Fatal(err)
		}
		gates = append(gates, b.gates[len(b.gates)-1])
	}
	spare()
	spare()
	spare()
	if want := []bool{false, true, true}; !slices.Equal(gates, want) {
		t.Errorf("%v, want %v", gates, want)
	}
}

// A restore that fails leaves neither a Chrome nor a run directory.
func TestAFailedRestoreLeavesNothing(t *testing.T) {
	l, err := launch.New(launch.Config{Binary: "/bin/true", Root: t.TempDir(), UIDs: launch.UIDRange{Base: 320500, Count: 3}})
	if err != nil {
		t.Fatal(err)
	}
	b := &fakeBrowsers{launcher: l, names: []string{"a", "b", "c"}, fails: fault.New(fault.BrowserFailed, "fake", "it died")}
	archives := &fakeArchives{}
	r := New(Config{Now: time.Now, Log: slog.New(slog.DiscardHandler)}, b, &fakeReady{}, archives, nil)
	_, err = r.FromFiles(t.Context(), Request{Engine: browser.EngineChrome}, profiles.Snapshot{ID: "s"})
	if !fault.Is(err, fault.BrowserFailed) {
		t.Fatalf("got %v", err)
	}
	// The second Chrome has no gates.
	if archives.releases != 2 || len(b.all) != 2 || !b.all[0].killed || !b.all[1].killed {
		t.Errorf("Release was called %d times; Chromes %+v", archives.releases, b.all)
	}
	for _, name := range []string{"a", "b"} {
		if _, err := l.LeftoverDir(name); err == nil {
			t.Errorf("the run directory %s is still there", name)
		}
	}
}
