package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/view"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/state"
)

// fakeBrowsers makes Chromes that have a run directory and no process. Each step can be
// made to fail or to wait; see on.
type fakeBrowsers struct {
	launcher *launch.Launcher

	mu    sync.Mutex
	steps map[string]func(*fakeChrome) error
	made  []*fakeChrome

	processors bool   // their limit can be put in place
	yielding   string // an owner that keeps the processors busy

	endless int             // kills whose context never ends
	working context.Context // of the last restore or check
}

var _ browsers.Launcher = (*fakeBrowsers)(nil)

// testUIDs is apart from the ranges that daemons and other tests use.
var testUIDs = launch.UIDRange{Base: 320000, Count: 500}

func newFakeBrowsers(t *testing.T, root string) *fakeBrowsers {
	t.Helper()
	launcher, err := launch.New(launch.Config{Binary: "/bin/true", Root: root, UIDs: testUIDs})
	if err != nil {
		t.Fatal(err)
	}
	return &fakeBrowsers{launcher: launcher, steps: map[string]func(*fakeChrome) error{}}
}

// on makes a step call do first; an error of do is the step's error. The steps are has,
// dir, spare and standby (with a nil Chrome), go, fresh, restored, capture, verify,
// environment, precopy, copy, trim, memory, freeze, thaw, serve, check, close and kill.
func (b *fakeBrowsers) on(step string, do func(*fakeChrome) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps[step] = do
}

// fails makes steps fail until works is called.
func (b *fakeBrowsers) fails(err error, steps ...string) {
	for _, step := range steps {
		b.on(step, func(*fakeChrome) error { return err })
	}
}

func (b *fakeBrowsers) works() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.steps)
}

func (b *fakeBrowsers) step(name string, c *fakeChrome) error {
	b.mu.Lock()
	do := b.steps[name]
	b.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(c)
}

// began records the context of a restore or a check that has begun.
func (b *fakeBrowsers) began(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.working = ctx
}

// lastContext returns the context of the last restore or check that has begun.
func (b *fakeBrowsers) lastContext() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.working
}

func (b *fakeBrowsers) all() []*fakeChrome {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*fakeChrome(nil), b.made...)
}

// last returns the Chrome that was started last.
func (b *fakeBrowsers) last() *fakeChrome {
	all := b.all()
	return all[len(all)-1]
}

func (b *fakeBrowsers) Has(string) error { return b.step("has", nil) }

func (b *fakeBrowsers) NewDir() (*browser.Dir, error) {
	if err := b.step("dir", nil); err != nil {
		return nil, err
	}
	return b.launcher.NewDir(strings.ToLower(rand.Text()[:8]))
}

func (b *fakeBrowsers) EndOrphans(ctx context.Context) ([]*browser.Dir, error) {
	return browsers.Chromes{Starter: browser.NewStarter(b.launcher, time.Now)}.EndOrphans(ctx)
}

func (b *fakeBrowsers) Spare(_ context.Context, dir *browser.Dir, o browser.Options) (browsers.Spare, error) {
	if err := b.step("spare", nil); err != nil {
		return nil, err
	}
	return &fakeSpare{fakeChrome: b.start(dir), made: o}, nil
}

func (b *fakeBrowsers) Fresh(ctx context.Context, dir *browser.Dir, o browser.Options) (browsers.Chrome, error) {
	return (&fakeSpare{fakeChrome: b.start(dir)}).Fresh(ctx, o)
}

func (b *fakeBrowsers) Restored(ctx context.Context, dir *browser.Dir, doc state.Document, o browser.Options) (browsers.Chrome, []state.Component, error) {
	return (&fakeSpare{fakeChrome: b.start(dir)}).Restored(ctx, doc, o)
}

func (b *fakeBrowsers) Standby(_ context.Context, dir *browser.Dir, doc state.Document, o browser.Options) (browsers.Standby, error) {
	if err := b.step("standby", nil); err != nil {
		return nil, err
	}
	p := &fakeSpare{fakeChrome: b.start(dir)}
	p.options = o
	return &fakeStandby{fakeSpare: p, doc: doc}, nil
}

// fakeStandby is a standby Chrome.
type fakeStandby struct {
	*fakeSpare
	doc state.Document
}

func (p *fakeStandby) Activate(ctx context.Context) (browsers.Chrome, []state.Component, error) {
	if err := p.b.step("go", p.fakeChrome); err != nil {
		p.die()
		return nil, nil, err
	}
	return p.Restored(ctx, p.doc, p.options)
}

// Egress returns the recorded limits.
func (c *fakeChrome) Egress() browser.Egress { return c.options.Egress }

// LimitEgress records the limits.
func (c *fakeChrome) LimitEgress(limits browser.Egress) error {
	c.options.Egress = limits
	return nil
}

// SetLimits records the limits.
func (c *fakeChrome) SetLimits(limits browser.Limits) error {
	c.options.Limits = limits
	return c.b.step("limits", c)
}

func (c *fakeChrome) Usage() browser.Usage { return c }

func (c *fakeChrome) DiskFull() <-chan struct{} { return c.full }

func (c *fakeChrome) Reached() (why, unreported []browser.Reached) { return c.reached, c.reached }

// fakeSpare is a spare Chrome.
type fakeSpare struct {
	*fakeChrome
	made browser.Options
}

func (p *fakeSpare) Fresh(_ context.Context, o browser.Options) (browsers.Chrome, error) {
	if err := p.become("fresh"); err != nil {
		return nil, err
	}
	p.options = o
	return p.fakeChrome, nil
}

func (p *fakeSpare) Restored(ctx context.Context, doc state.Document, o browser.Options) (browsers.Chrome, []state.Component, error) {
	p.starting = ctx
	p.b.began(ctx)
	if err := p.become("restored"); err != nil {
		return nil, nil, err
	}
	p.restored, p.options = doc, o
	return p.fakeChrome, []state.Component{{Name: state.ComponentCookies, Origin: "a.example", Saved: 1, Restored: 1}}, nil
}

// become makes it a session's Chrome, whose profile has its own file.
func (p *fakeSpare) become(step string) error {
	err := p.b.step(step, p.fakeChrome)
	if err == nil {
		err = p.gone()
	}
	if err != nil {
		p.die()
		return err
	}
	profile := filepath.Join(p.dir.Profile(), profile.Default)
	return errors.Join(os.MkdirAll(profile, 0o700),
		os.WriteFile(filepath.Join(profile, "Files"), []byte("jar of "+p.dir.Name()), 0o600))
}

// start makes a Chrome.
func (b *fakeBrowsers) start(dir *browser.Dir) *fakeChrome {
	c := &fakeChrome{b: b, dir: dir, done: make(chan struct{}), full: make(chan struct{}, 1), left: make(chan struct{}), closing: state.DatadirClean}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.made = append(b.made, c)
	return c
}

// fakeChrome is a Chrome without a process. It checks the order of calls.
type fakeChrome struct {
	passkeys state.Passkeys
	b        *fakeBrowsers
	dir      *browser.Dir
	restored state.Document
	options  browser.Options
	closing  state.Datadir         // the result of Close
	reads    func(*state.Document) // changes the result of Capture
	version  string                // "": the usual one
	starting context.Context       // the context of the restore that is under way, for its step

	mu        sync.Mutex
	frozen    bool
	over      sync.Once
	done      chan struct{} // closed when Chrome is dead
	notify    func(browser.PageEvent)
	listener  int
	admission mux.Admission
	shut      bool
	left      chan struct{} // closed when clients are disconnected
	code      int
	opened    []string
	jar       []state.Cookie // the result of Cookies
	at        string         // the page's URL
	went      []string       // URLs of Navigate

	memory    int64                // the result of Memory
	loggedOut bool                 // the opposite of CheckLogin's result
	asked     []browser.LoginCheck // the checks that CheckLogin was given

	full    chan struct{}     // the result of DiskFull
	reached []browser.Reached // the result of Reached

	found    state.Verification // the result of Verify and VerifyThawed
	compared state.Document     // the document that VerifyThawed was given
}

var _ browsers.Chrome = (*fakeChrome)(nil)

func (c *fakeChrome) SecondProfileReason() string { return "" }

// die ends Chrome, as a crash or an end.
func (c *fakeChrome) die() { c.over.Do(func() { close(c.done) }) }

func (c *fakeChrome) dead() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (c *fakeChrome) gone() error {
	if c.dead() {
		return fault.New(fault.BrowserFailed, "fake", "Chrome is gone")
	}
	return nil
}

func (c *fakeChrome) Engine() string { return cmp.Or(c.options.Engine, browser.EngineChrome) }

func (c *fakeChrome) Version() string       { return cmp.Or(c.version, "156.0.8078.79") }
func (c *fakeChrome) UserAgent() string     { return "Fake/156" }
func (c *fakeChrome) Protocol() string      { return "1.3" }
func (c *fakeChrome) Dir() *browser.Dir     { return c.dir }
func (c *fakeChrome) Done() <-chan struct{} { return c.done }

func (c *fakeChrome) Admission() mux.Admission {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.admission
}

// Serve holds a client until the test releases it (Conn.Read returns), it is
// disconnected, or Chrome dies.
func (c *fakeChrome) Serve(ctx context.Context, conn Conn, options mux.ServeOptions) error {
	if err := c.b.step("serve", c); err != nil {
		return err
	}
	c.mu.Lock()
	late, left := c.shut || options.Admission != c.admission, c.left
	c.mu.Unlock()
	if late {
		return conn.Close(c.code, "session_ended")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = conn.Read(ctx)
	}()
	select {
	case <-gone:
	case <-left:
	case <-c.done:
	case <-ctx.Done():
	}
	cancel()
	<-gone
	return nil
}

func (c *fakeChrome) CloseClients(_ context.Context, code int, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code = code
	if !c.shut {
		c.shut = true
		close(c.left)
	}
	return nil
}

func (c *fakeChrome) Pages(context.Context) ([]browser.Page, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []browser.Page{{ID: "T1", Title: "one", URL: cmp.Or(c.at, "https://a.example/")}}, c.gone()
}

func (c *fakeChrome) Navigate(_ context.Context, url string) (string, error) {
	if err := c.b.step("navigate", c); err != nil {
		return "", err
	}
	c.went = append(c.went, url)
	return url, c.gone()
}

func (c *fakeChrome) Open(_ context.Context, url string) error {
	c.opened = append(c.opened, url)
	if err := c.b.step("open", c); err != nil {
		return err
	}
	return c.gone()
}

func (c *fakeChrome) View(ctx context.Context, conn view.Conn, v view.Viewer) error {
	if !v.LinkExpires.IsZero() {
		_ = conn.Write(ctx, fmt.Appendf(nil, "a link, may share %v, may save %v", v.MayShare, v.MaySave)) // the next write fails too
	}
	for {
		if err := conn.Write(ctx, fmt.Appendf(nil, "control %v, viewers %d", v.Control, v.Viewers())); err != nil {
			return nil //nolint:nilerr // the viewer disconnected
		}
		select {
		case <-ctx.Done():
			return nil
		case <-v.ViewersChanged:
		}
	}
}

func (c *fakeChrome) Listen(notify func(browser.PageEvent), _ bool) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listener++
	c.notify = notify
	mine := c.listener
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.listener == mine {
			c.notify = nil
		}
	}
}

// emit emits an event of its pages.
func (c *fakeChrome) emit(kind string, data map[string]any) {
	c.mu.Lock()
	notify := c.notify
	c.mu.Unlock()
	if notify != nil {
		notify(browser.PageEvent{Kind: kind, Data: data})
	}
}

func (c *fakeChrome) Screenshot(context.Context) ([]byte, string, string, error) {
	return []byte{0xff, 0xd8}, "https://a.example/", "one", c.gone()
}

func (c *fakeChrome) Passkeys() (state.Passkeys, bool) { return c.passkeys, c.passkeys.Enabled }

func (c *fakeChrome) Capture(context.Context) (state.Document, error) {
	if err := c.b.step("capture", c); err != nil {
		return state.Document{}, err
	}
	doc := state.Document{SchemaVersion: state.SchemaVersion, Complete: true, Datadir: state.DatadirLive,
		Chrome:  state.Chrome{Version: c.Version(), Engine: c.Engine()},
		Cookies: []state.Cookie{{Name: "sid", Value: "of " + c.dir.Name(), Domain: "a.example", Path: "/", Session: true}},
		Local:   []state.Area{}, Tabs: []state.Tab{{URL: "https://a.example/", Active: true}}, Extensions: c.options.Extensions}
	if c.reads != nil {
		c.reads(&doc)
	}
	return doc, c.gone()
}

func (c *fakeChrome) Cookies(context.Context) ([]state.Cookie, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jar, c.gone()
}

func (c *fakeChrome) CheckLogin(ctx context.Context, check browser.LoginCheck) (browser.LoginOutcome, error) {
	c.b.began(ctx)
	if err := c.b.step("check", c); err != nil {
		return browser.LoginOutcome{}, err
	}
	if err := c.gone(); err != nil {
		return browser.LoginOutcome{}, err
	}
	c.asked = append(c.asked, check)
	return browser.LoginOutcome{LoggedIn: !c.loggedOut, URL: "https://a.example/account", Status: 200,
		Conditions: []browser.Condition{{Kind: browser.ConditionStatus, Held: !c.loggedOut}}}, nil
}

func (c *fakeChrome) Verify(context.Context, state.Document, []state.Component) (state.Verification, error) {
	err := c.b.step("verify", c)
	return c.found, err
}

func (c *fakeChrome) VerifyThawed(_ context.Context, doc state.Document) (state.Verification, error) {
	c.compared = doc
	err := c.b.step("verify", c)
	return c.found, err
}

func (c *fakeChrome) AwaitTabs(context.Context, state.Document) bool { return false }

func (c *fakeChrome) Environment(ctx context.Context) ([]profile.File, error) {
	if err := c.b.step("environment", c); err != nil {
		return nil, err
	}
	return profile.Select(ctx, c.dir.Profile())
}

func (c *fakeChrome) Precopy(ctx context.Context, to *profile.Copy) error {
	if err := c.b.step("precopy", c); err != nil {
		return err
	}
	_, err := to.Update(ctx, c.dir.Profile())
	return err
}

func (c *fakeChrome) Copy(ctx context.Context, to *profile.Copy) (time.Duration, error) {
	if err := c.b.step("copy", c); err != nil {
		return 0, err
	}
	_, err := to.Update(ctx, c.dir.Profile())
	return time.Millisecond, errors.Join(err, c.gone())
}

func (c *fakeChrome) Trim(context.Context) { _ = c.b.step("trim", c) }

func (c *fakeChrome) Memory() int64 {
	_ = c.b.step("memory", c)
	return c.memory
}

func (c *fakeChrome) Freeze(context.Context) error {
	if err := c.b.step("freeze", c); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = true
	return c.gone()
}

func (c *fakeChrome) Wake(ctx context.Context) error {
	if !c.Frozen() {
		return nil
	}
	return c.Thaw(ctx)
}

func (c *fakeChrome) Thaw(context.Context) error {
	if err := c.b.step("thaw", c); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = false
	if c.shut {
		c.shut, c.left = false, make(chan struct{})
		c.admission++
	}
	return c.gone()
}

func (c *fakeChrome) Frozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen && !c.dead()
}

func (c *fakeChrome) Close(context.Context) (state.Datadir, error) {
	if err := c.b.step("close", c); err != nil {
		return state.DatadirCrash, err
	}
	c.die()
	return c.closing, nil
}

func (c *fakeChrome) Kill(ctx context.Context) error {
	if ctx.Done() == nil {
		c.b.mu.Lock()
		c.b.endless++
		c.b.mu.Unlock()
	}
	if err := c.b.step("kill", c); err != nil {
		return err
	}
	c.die()
	return nil
}

// CanLimitEgress returns nil: the fake Chromes record their limits.
func (b *fakeBrowsers) CanLimitEgress(browser.Egress) error { return nil }

// CanLimit returns nil, too, but for processors only if the field is set.
func (b *fakeBrowsers) Yields(owner string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return owner != "" && b.yielding == owner
}

func (b *fakeBrowsers) CanLimit(l browser.Limits) error {
	if l.CPUs > 0 && !b.processors {
		return fault.New(fault.Unsupported, "fake.limits", "limits.cpus: not supported")
	}
	return nil
}
