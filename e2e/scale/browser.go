package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/view"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/state"
)

// simulator makes simulated browsers. Each has a run directory with a small profile and a
// state document, and no process. It takes no time to start one.
type simulator struct{ root string }

var _ browsers.Launcher = simulator{}

// errSimulated says that a simulated browser cannot do something that a run does not need.
var errSimulated = errors.New("a simulated browser cannot do this")

// Has implements [browsers.Launcher].
func (simulator) Has(string) error { return nil }

// CanLimitEgress implements [browsers.Launcher].
func (simulator) CanLimitEgress(browser.Egress) error { return nil }

// CanLimit implements [browsers.Launcher].
func (simulator) CanLimit(browser.Limits) error { return nil }

// Yields implements [browsers.Launcher].
func (simulator) Yields(string) bool { return false }

// EndOrphans implements [browsers.Launcher].
func (simulator) EndOrphans(context.Context) ([]*browser.Dir, error) { return nil, nil }

// NewDir implements [browsers.Launcher]. A launcher of package browser/launch would look for
// a free user ID among all processes of the machine, and a run has thousands of them.
func (s simulator) NewDir() (*browser.Dir, error) {
	d := (&browser.Dir{UID: os.Geteuid()}).Waiting() // the only one that belongs to no launcher
	d.Path = filepath.Join(s.root, strings.ToLower(rand.Text()[:16]))
	for _, folder := range []string{d.Profile(), d.Files(), d.Waiting().Profile()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Spare implements [browsers.Launcher].
func (simulator) Spare(_ context.Context, dir *browser.Dir, _ browser.Options) (browsers.Spare, error) {
	return &simulated{dir: dir, done: make(chan struct{})}, nil
}

// Fresh implements [browsers.Launcher].
func (s simulator) Fresh(ctx context.Context, dir *browser.Dir, o browser.Options) (browsers.Chrome, error) {
	return (&simulated{dir: dir, done: make(chan struct{})}).Fresh(ctx, o)
}

// Restored implements [browsers.Launcher].
func (s simulator) Restored(ctx context.Context, dir *browser.Dir, doc state.Document, o browser.Options) (browsers.Chrome, []state.Component, error) {
	return (&simulated{dir: dir, done: make(chan struct{})}).Restored(ctx, doc, o)
}

// Standby implements [browsers.Launcher]. Nodes of a run keep none.
func (simulator) Standby(context.Context, *browser.Dir, state.Document, browser.Options) (browsers.Standby, error) {
	return nil, errSimulated
}

// simulated is a simulated browser, and before that a spare one.
type simulated struct {
	dir     *browser.Dir
	options browser.Options
	doc     state.Document

	mu     sync.Mutex
	frozen bool
	over   sync.Once
	done   chan struct{} // closed when it has ended
}

var (
	_ browsers.Chrome = (*simulated)(nil)
	_ browsers.Spare  = (*simulated)(nil)
)

// Fresh implements [browsers.Spare].
func (c *simulated) Fresh(_ context.Context, o browser.Options) (browsers.Chrome, error) {
	c.options = o
	file := filepath.Join(c.dir.Profile(), "Default", "Preferences")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	return c, os.WriteFile(file, []byte(`{"simulated":"`+c.dir.Name()+`"}`), 0o600)
}

// Restored implements [browsers.Spare].
func (c *simulated) Restored(ctx context.Context, doc state.Document, o browser.Options) (browsers.Chrome, []state.Component, error) {
	c.doc = doc
	chrome, err := c.Fresh(ctx, o)
	return chrome, []state.Component{{Name: state.ComponentCookies, Origin: "shop.example", Saved: 1, Restored: 1}}, err
}

func (c *simulated) end() { c.over.Do(func() { close(c.done) }) }

// Engine implements [browsers.Identity], as do the next three.
func (c *simulated) Engine() string  { return cmp.Or(c.options.Engine, browser.EngineChrome) }
func (*simulated) Version() string   { return "156.0.0.0" }
func (*simulated) UserAgent() string { return "simulated" }
func (*simulated) Protocol() string  { return "1.3" }

// SecondProfileReason implements [browsers.Loaded].
func (*simulated) SecondProfileReason() string { return "" }

// Dir implements [browsers.Process], as do the next three.
func (c *simulated) Dir() *browser.Dir          { return c.dir }
func (c *simulated) Done() <-chan struct{}      { return c.done }
func (c *simulated) Kill(context.Context) error { c.end(); return nil }
func (c *simulated) Close(context.Context) (state.Datadir, error) {
	c.end()
	return state.DatadirClean, nil
}

// Egress implements [browsers.EgressLimiter], with LimitEgress.
func (c *simulated) Egress() browser.Egress             { return c.options.Egress }
func (c *simulated) LimitEgress(e browser.Egress) error { c.options.Egress = e; return nil }

// SetLimits implements [browsers.Limiter].
func (c *simulated) SetLimits(l browser.Limits) error { c.options.Limits = l; return nil }

// Usage implements [browsers.Chrome]. It uses nothing.
func (c *simulated) Usage() browser.Usage { return c }

// DiskFull implements [browser.Usage], with Reached.
func (*simulated) DiskFull() <-chan struct{}                    { return nil }
func (*simulated) Reached() (why, unreported []browser.Reached) { return nil, nil }

// Trim implements [browsers.Freezer], as do the next five.
func (*simulated) Trim(context.Context)           {}
func (*simulated) Memory() int64                  { return 0 }
func (c *simulated) Freeze(context.Context) error { c.setFrozen(true); return nil }
func (c *simulated) Thaw(context.Context) error   { c.setFrozen(false); return nil }
func (c *simulated) Wake(context.Context) error   { c.setFrozen(false); return nil }
func (c *simulated) Frozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen
}

func (c *simulated) setFrozen(frozen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = frozen
}

// Admission implements [browsers.Clients], as do the next two. No client connects.
func (*simulated) Admission() mux.Admission                                { return 0 }
func (*simulated) Serve(context.Context, mux.Conn, mux.ServeOptions) error { return errSimulated }
func (*simulated) CloseClients(context.Context, int, string) error         { return nil }

// Pages implements [browsers.Tabs], as do the next four.
func (*simulated) Pages(context.Context) ([]browser.Page, error) {
	return []browser.Page{{ID: "T1", Title: "shop", URL: "https://shop.example/"}}, nil
}
func (*simulated) Navigate(_ context.Context, url string) (string, error) { return url, nil }
func (*simulated) Open(context.Context, string) error                     { return nil }
func (*simulated) Screenshot(context.Context) ([]byte, string, string, error) {
	return nil, "", "", errSimulated
}
func (*simulated) Listen(func(browser.PageEvent), bool) func() { return func() {} }

// View implements [browsers.Viewed].
func (*simulated) View(context.Context, view.Conn, view.Viewer) error { return errSimulated }

// Capture implements [browsers.Reader], as do the next three.
func (c *simulated) Capture(context.Context) (state.Document, error) {
	return state.Document{SchemaVersion: state.SchemaVersion, Complete: true, Datadir: state.DatadirLive,
		Chrome:  state.Chrome{Version: c.Version(), Engine: c.Engine()},
		Cookies: []state.Cookie{{Name: "sid", Value: c.dir.Name(), Domain: "shop.example", Path: "/", Session: true}},
		Local:   []state.Area{}, Tabs: []state.Tab{{URL: "https://shop.example/", Active: true}}}, nil
}
func (*simulated) Cookies(context.Context) ([]state.Cookie, error) { return nil, nil }
func (*simulated) Passkeys() (state.Passkeys, bool)                { return state.Passkeys{}, false }
func (*simulated) Storage(context.Context, []string) (browser.Storage, error) {
	return browser.Storage{}, nil
}

// Verify implements [browsers.Verifier], as do the next two.
func (*simulated) Verify(context.Context, state.Document, []state.Component) (state.Verification, error) {
	return state.Verification{}, nil
}
func (*simulated) VerifyThawed(context.Context, state.Document) (state.Verification, error) {
	return state.Verification{}, nil
}
func (*simulated) CheckLogin(context.Context, browser.LoginCheck) (browser.LoginOutcome, error) {
	return browser.LoginOutcome{}, errSimulated
}

// Environment implements [browsers.Files], as do the next three. Saves in a run end their
// session, so no running profile is copied.
func (*simulated) Environment(context.Context) ([]browser.File, error)        { return nil, nil }
func (*simulated) AwaitTabs(context.Context, state.Document) bool             { return false }
func (*simulated) Precopy(context.Context, *browser.Copy) error               { return errSimulated }
func (*simulated) Copy(context.Context, *browser.Copy) (time.Duration, error) { return 0, errSimulated }
