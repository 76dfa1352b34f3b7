package session

import (
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/state"
)

// newStandbyRig makes a rig that keeps standbys.
func newStandbyRig(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	r := newRig(t, func(c *Config) {
		c.Standby = pool.Limits{Size: 2, Age: time.Hour}
		if change != nil {
			change(c)
		}
	})
	if err := recovered(t.Context(), r.Service); err != nil {
		t.Fatal(err)
	}
	return r
}

// requestStandbys sets how many standbys a user's settings request.
func (r *rig) requestStandbys(c access.Caller, n int64) {
	r.t.Helper()
	if _, err := r.ChangeSettings(r.t.Context(), c, c.UserID, func(s settings.Settings) (settings.Settings, error) {
		s.Standby = &n
		return s, nil
	}); err != nil {
		r.t.Fatal(err)
	}
}

// awaitStandbys waits until there are n standbys.
func (r *rig) awaitStandbys(n int) {
	r.t.Helper()
	await(r.t, "the standbys are ready", func() bool { return r.Counts().Standbys == n })
}

func fromBob(c *request.Create) { c.FromDefaultOf = bob.UserID }

// A restore of the default takes the standby, which another one replaces. Close leaves
// none.
func TestStandby(t *testing.T) {
	r := newStandbyRig(t, nil)
	_, snap := r.saved(alice, asDefault)
	r.requestStandbys(alice, 1)
	r.awaitStandbys(1)
	chrome := r.browsers.last()
	info := r.create(alice, fromAlice)
	p := info.Restored
	if p.Path != restore.PathStandby || p.Mode != "filesystem" || p.FallbackReason != "" || p.SnapshotID != snap || len(p.Components) < 2 {
		t.Errorf("%+v", p)
	}
	if chrome.dead() || chrome.restored.Datadir != state.DatadirClean || !chrome.options.RestoreTabs {
		t.Errorf("dead %t, %+v, %+v", chrome.dead(), chrome.restored.Datadir, chrome.options)
	}
	r.awaitStandbys(1)
	// The snapshot decides, not how the create named it.
	next := r.browsers.last()
	other := r.create(alice, func(c *request.Create) { c.FromEnvironment = snap })
	if other.Restored.Path != restore.PathStandby || next.dead() || next == chrome {
		t.Errorf("%+v", other.Restored)
	}
	r.awaitStandbys(1)
	r.end(alice, info.ID, none)
	r.end(alice, other.ID, none)
	await(t, "one run directory", func() bool { return r.dirs() == 1 })
	if err := r.Close(t.Context()); err != nil || r.dirs() != 0 {
		t.Errorf("%d run directories after Close, %v", r.dirs(), err)
	}
	// The next daemon knows which users request standbys.
	again := r.daemon(func(c *Config) { c.Standby = pool.Limits{Size: 1, Age: time.Hour} })
	if err := recovered(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	await(t, "a standby is ready after a restart", func() bool { return again.Counts().Standbys == 1 })
}

// awaitStandbyOf waits for a standby of a snapshot and returns its Chrome.
func (r *rig) awaitStandbyOf(snap string) *fakeChrome {
	r.t.Helper()
	await(r.t, "a standby of the snapshot is ready", func() bool {
		n := 0
		_, _, _ = r.capacity.TakeStandby(snap, browser.EngineChrome, func(*restore.Standby) string {
			n++
			return "the test only counts them"
		})
		return n == 1
	})
	return r.browsers.last()
}

// However the default moves, the standby of the old one ends. A create gets the new
// default, even if no standby of it is ready.
func TestStandbyIsNeverStale(t *testing.T) {
	r := newStandbyRig(t, nil)
	_, now := r.saved(alice, asDefault)
	first := now
	r.requestStandbys(alice, 1)
	for name, move := range map[string]func() string{
		"a save": func() string {
			_, snap := r.saved(alice, asDefault)
			return snap
		},
		"a put": func() string {
			snap := first
			if now == first {
				_, snap = r.saved(alice, filesystem)
			}
			if _, err := r.library.SetDefault(t.Context(), alice, "alice", snap, nil); err != nil {
				t.Fatal(err)
			}
			return snap
		},
	} {
		old := r.awaitStandbyOf(now)
		held := make(chan struct{})
		r.browsers.on("standby", func(*fakeChrome) error { <-held; return nil })
		now = move()
		await(t, "the old standby has ended", old.dead)
		info := r.create(alice, fromAlice)
		if p := info.Restored; p.SnapshotID != now || p.Path != restore.PathCold || p.FallbackReason == "" {
			t.Errorf("%s: %+v", name, p)
		}
		close(held)
		r.browsers.works()
		r.awaitStandbyOf(now)
		r.end(alice, info.ID, none)
	}
	if err := r.library.DeleteDefault(t.Context(), alice, "alice"); err != nil {
		t.Fatal(err)
	}
	r.awaitStandbys(0)
	await(t, "no run directory", func() bool { return r.dirs() == 0 })
}

// oftenRestored is how many restores within an hour give a default a standby.
const oftenRestored = 3

// A default that is restored often has a standby as long as that lasts. Settings that
// keep none have none.
func TestStandbyOfFrequentDefault(t *testing.T) {
	r := newStandbyRig(t, nil)
	r.saved(alice, asDefault)
	restored := func(path string) {
		t.Helper()
		info := r.create(alice, fromAlice)
		if info.Restored.Path != path {
			t.Errorf("%+v", info.Restored)
		}
		r.end(alice, info.ID, none)
	}
	for range oftenRestored {
		restored(restore.PathCold)
	}
	r.awaitStandbys(1)
	restored(restore.PathStandby)
	r.awaitStandbys(1)
	r.clock.add(2 * time.Hour)
	r.capacity.Replenish()
	r.awaitStandbys(0)
	r.requestStandbys(alice, 0)
	for range oftenRestored + 1 {
		restored(restore.PathCold)
	}
}

// If a create's options differ from a standby, the report names them, and the standby
// stays for the next create.
func TestStandbyWithOtherOptions(t *testing.T) {
	r := newStandbyRig(t, nil)
	r.saved(alice, asDefault)
	r.requestStandbys(alice, 1)
	r.awaitStandbys(1)
	yes := true
	for reason, ask := range map[string]func(*request.Create){
		"locale":        func(c *request.Create) { c.Overrides.Locale = "fr-FR" },
		"restore_tabs":  func(c *request.Create) { c.RestoreTabs = false },
		"origins":       func(c *request.Create) { c.Origins = state.Selection{Include: []string{"a.example"}} },
		"passkeys":      func(c *request.Create) { c.Passkeys = &yes },
		"shell engine:": nil,
	} {
		info := r.create(alice, func(c *request.Create) {
			if fromAlice(c); ask == nil {
				inShell(c)
			} else {
				ask(c)
			}
		})
		if p := info.Restored; p.Path != restore.PathCold || ask != nil && !strings.Contains(p.FallbackReason, reason) {
			t.Errorf("%s: %+v", reason, p)
		}
		r.end(alice, info.ID, none)
	}
	if n := r.Counts().Standbys; n != 1 {
		t.Errorf("%d standbys", n)
	}
}

// A standby that dies is replaced. One that fails when it is taken is ended, and a cold
// start follows.
func TestFailingStandby(t *testing.T) {
	r := newStandbyRig(t, nil)
	r.saved(alice, asDefault)
	r.requestStandbys(alice, 1)
	r.awaitStandbys(1)
	first := r.browsers.last()
	first.die()
	await(t, "another standby has replaced it", func() bool { return r.browsers.last() != first && r.Counts().Standbys == 1 })
	r.browsers.fails(fault.New(fault.BrowserFailed, "fake", "it hangs"), "go", "standby")
	info := r.create(alice, fromAlice)
	if p := info.Restored; p.Path != restore.PathCold || !strings.Contains(p.FallbackReason, "it hangs") {
		t.Errorf("%+v", p)
	}
	// A snapshot that fails to start does not keep other snapshots from a standby.
	r.saved(bob, asDefault)
	r.browsers.works()
	r.requestStandbys(bob, 1)
	await(t, "bob's standby is ready", func() bool { return r.Counts().Standbys > 0 })
	r.clock.add(10 * time.Minute)
	r.capacity.Replenish()
	r.awaitStandbys(2)
	r.end(alice, info.ID, none)
}

// Standbys give way to sessions, and to each other by their users' restores. If memory is
// short there are none.
func TestStandbysGiveWay(t *testing.T) {
	r := newStandbyRig(t, func(c *Config) { c.MaxSessions, c.Standby.Size = 2, 2 })
	_, of := r.saved(alice, asDefault)
	r.saved(bob, asDefault)
	r.requestStandbys(alice, 2)
	r.awaitStandbys(2)
	one := r.create(bob, nil).ID
	r.awaitStandbys(1)
	two := r.create(bob, nil).ID
	r.awaitStandbys(0)
	r.end(bob, one, none)
	r.awaitStandbyOf(of)
	// Bob's settings also request some; none of alice's is in use.
	r.requestStandbys(bob, 1)
	info := r.create(bob, fromBob)
	r.end(bob, two, none)
	latest := r.awaitStandbyOf(info.Restored.SnapshotID)
	if latest.dead() {
		t.Error("the last restored default has no standby")
	}
	r.short.Store(true)
	r.end(bob, info.ID, none)
	id := r.create(bob, nil).ID
	r.awaitStandbys(0)
	r.end(bob, id, none)
	if n := r.Counts().Standbys; n != 0 {
		t.Errorf("%d standbys although memory is short", n)
	}
}

// An environment with extensions has no standby in full Chrome, because the extensions'
// workers would run before a create.
func TestNoStandbyWithExtensions(t *testing.T) {
	r := newStandbyRig(t, nil)
	e, _, err := r.uploaded.PutExtension(t.Context(), alice, extensionZip(t, "Night", "1"))
	if err != nil {
		t.Fatal(err)
	}
	id := r.create(alice, func(c *request.Create) { c.Extensions = []string{e.ID} }).ID
	r.end(alice, id, asDefault)
	r.requestStandbys(alice, 1)
	r.saved(bob, asDefault)
	r.requestStandbys(bob, 1)
	r.awaitStandbys(1)
	info := r.create(alice, fromAlice)
	if p := info.Restored; p.Path != restore.PathCold || p.FallbackReason != "" {
		t.Errorf("%+v", p)
	}
	r.end(alice, info.ID, none)
}
