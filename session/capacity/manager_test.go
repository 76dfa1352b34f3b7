package capacity

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// chrome is a fake Chrome that can only run and end.
type chrome struct {
	name string
	done chan struct{}
}

func newChrome(name string) *chrome { return &chrome{name: name, done: make(chan struct{})} }

func (c *chrome) Kill(context.Context) error { close(c.done); return nil }
func (c *chrome) Done() <-chan struct{}      { return c.done }
func (c *chrome) Memory() int64              { return 1 }

// fakeSessions starts Chromes at once, unless fails returns an error.
type fakeSessions struct {
	settings StandbySettings
	fails    error
	short    bool // memory is short
}

func (f *fakeSessions) StartSpare(_ context.Context, engine string) (*chrome, error) {
	return newChrome(engine), f.fails
}

func (f *fakeSessions) StartStandby(_ context.Context, snap profiles.Snapshot, _ string) (*chrome, error) {
	return newChrome(snap.ID), f.fails
}

func (f *fakeSessions) StandbySettings(context.Context, string, profiles.Snapshot) (StandbySettings, error) {
	return f.settings, nil
}

func (f *fakeSessions) Creating() bool     { return false }
func (f *fakeSessions) MemoryAllows() bool { return !f.short }

// fakeCatalogue has one default for each user. Its snapshot's ID is the user's name.
type fakeCatalogue struct {
	extensions []profiles.PinnedExtension // of every snapshot
	none       bool                       // no user has a default
}

func (f fakeCatalogue) Default(_ context.Context, userID string) (profiles.Default, error) {
	if f.none {
		return profiles.Default{}, fault.New(fault.DefaultNotFound, "", "")
	}
	return profiles.Default{SnapshotID: userID}, nil
}

func (f fakeCatalogue) Snapshot(_ context.Context, id string) (profiles.Snapshot, error) {
	return profiles.Snapshot{ID: id}, nil
}

func (f fakeCatalogue) SnapshotExtensions(context.Context, string) ([]profiles.PinnedExtension, error) {
	return f.extensions, nil
}

// epoch is the time on the clock of these tests.
var epoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func newManager(t *testing.T, standbys int, sessions *fakeSessions, catalogue Catalogue) *Manager[*chrome, *chrome, *chrome] {
	t.Helper()
	m := New[*chrome](Config{
		Sessions: 4, Parked: pool.Limits{Size: 2, Age: time.Hour}, Standby: pool.Limits{Size: standbys, Age: time.Hour},
		Spares: map[string]pool.Limits{browser.EngineChrome: {Size: 1, Age: time.Hour}, browser.EngineShell: {Size: 1, Age: time.Hour}},
		Now:    func() time.Time { return epoch }, Log: slog.New(slog.DiscardHandler),
	}, sessions, catalogue)
	t.Cleanup(func() {
		m.Stop()
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// Chromes are kept ready for the engine in use and for users with standby settings. A
// taken Chrome is replaced. No Chrome is kept when memory is short.
func TestChromesAreKeptReady(t *testing.T) {
	sessions := &fakeSessions{settings: StandbySettings{Set: true, Count: 1, Engine: browser.EngineChrome}}
	m := newManager(t, 2, sessions, fakeCatalogue{})
	counts := func(spares, standbys int) func() bool {
		return func() bool { c := m.Counts(); return c.Spares == spares && c.Standbys == standbys }
	}
	m.Replenish()
	await(t, "a spare of the daemon's engine", counts(1, 0))
	if n := m.spares.most(browser.EngineShell); n != 0 {
		t.Errorf("%d spares are allowed of an engine that no create uses", n)
	}
	m.UseEngine(browser.EngineShell)
	m.Replenish()
	await(t, "a spare of each engine", counts(2, 0))
	m.SetStandbys("alice", true)
	await(t, "alice's standby", counts(2, 1))
	if _, ok, why := m.TakeStandby("bob", browser.EngineChrome, func(*chrome) string { return "" }); ok || why != "" {
		t.Errorf("standby that was not planned: %t, %q", ok, why)
	}
	if _, ok, why := m.TakeStandby("alice", browser.EngineChrome, func(*chrome) string { return "it differs" }); ok || why != "it differs" {
		t.Errorf("standby that does not fit: %t, %q", ok, why)
	}
	taken, ok, why := m.TakeStandby("alice", browser.EngineChrome, func(*chrome) string { return "" })
	if !ok || taken.name != "alice" || why != "" {
		t.Errorf("alice's standby: %t, %q", ok, why)
	}
	// Without one a report says so only if the settings request it.
	for requested, want := range map[bool]string{true: "no standby Chrome was ready", false: ""} {
		k := m.standbys
		k.mu.Lock()
		key := pool.Key{Snapshot: "missing", Engine: browser.EngineChrome}
		k.wanted, k.requested = map[pool.Key]int{key: 1}, map[pool.Key]bool{key: requested}
		k.mu.Unlock()
		if _, ok, why := m.TakeStandby("missing", browser.EngineChrome, func(*chrome) string { return "" }); ok || why != want {
			t.Errorf("requested %t: %t, %q", requested, ok, why)
		}
	}
	m.Replenish()
	await(t, "another standby", counts(2, 1))
}

// Standbys of users whose settings request them are planned before those of users who
// restore often.
func TestPlan(t *testing.T) {
	set := StandbySettings{Set: true, Count: 3, Engine: browser.EngineShell}
	for name, test := range map[string]struct {
		settings  StandbySettings
		catalogue fakeCatalogue
		demand    func(*demand)
		want      string
	}{
		"no user":   {set, fakeCatalogue{}, func(*demand) {}, "[]"},
		"set":       {set, fakeCatalogue{}, func(d *demand) { d.setRequested("alice", true) }, "[alice/shell 2]"},
		"two users": {StandbySettings{Set: true, Count: 1, Engine: browser.EngineShell}, fakeCatalogue{}, func(d *demand) { d.setRequested("bob", true); d.setRequested("alice", true) }, "[alice/shell 1 bob/shell 1]"},
		"not often": {StandbySettings{}, fakeCatalogue{}, func(d *demand) { d.count("alice", browser.EngineChrome) }, "[]"},
		"often": {StandbySettings{}, fakeCatalogue{}, func(d *demand) {
			for range oftenTimes {
				d.count("alice", browser.EngineChrome)
			}
		}, "[alice/chrome 1]"},
		"set and often": {StandbySettings{Set: true, Count: 2, Engine: browser.EngineShell}, fakeCatalogue{}, func(d *demand) {
			d.setRequested("alice", true)
			for range oftenTimes {
				d.count("bob", browser.EngineShell)
			}
		}, "[alice/shell 2]"},
		"often, but settings keep none": {StandbySettings{Set: true, Engine: browser.EngineChrome}, fakeCatalogue{}, func(d *demand) {
			for range oftenTimes {
				d.count("alice", browser.EngineChrome)
			}
		}, "[]"},
		"engine not installed": {StandbySettings{Set: true, Count: 1}, fakeCatalogue{}, func(d *demand) { d.setRequested("alice", true) }, "[]"},
		"no default":           {set, fakeCatalogue{none: true}, func(d *demand) { d.setRequested("alice", true) }, "[]"},
		"extensions": {StandbySettings{Set: true, Count: 1, Engine: browser.EngineChrome},
			fakeCatalogue{extensions: []profiles.PinnedExtension{{}}}, func(d *demand) { d.setRequested("alice", true) }, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newManager(t, 0, &fakeSessions{settings: test.settings}, test.catalogue)
			m.standbys.cfg.Standby.Size = 2 // without run, which would also make plans
			m.standbys.demand.enabled = true
			test.demand(m.standbys.demand)
			plan, err := m.standbys.plan()
			if err != nil {
				t.Fatal(err)
			}
			got := []string{}
			for _, w := range plan {
				got = append(got, fmt.Sprintf("%s/%s %d", w.key.Snapshot, w.key.Engine, w.n))
			}
			if fmt.Sprint(got) != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

// Failures of snapshots are forgotten when their standbys are no longer planned.
func TestFailedStandbysAreForgotten(t *testing.T) {
	m := newManager(t, 0, &fakeSessions{}, fakeCatalogue{})
	k := m.standbys
	k.demand.users["alice"] = &userDemand{requested: true}
	kept := pool.Key{Snapshot: "new"}
	k.failed[kept] = failure{pause: longStandbyPause, until: epoch.Add(longStandbyPause)}
	for n := range 100 {
		k.failed[pool.Key{Snapshot: fmt.Sprint(n)}] = failure{pause: standbyPause, until: epoch}
	}
	k.update()
	if _, is := k.failed[kept]; !is || len(k.failed) != 1 {
		t.Errorf("%d failures are kept, the latest %v", len(k.failed), is)
	}
}

// When memory is short, parked Chromes are ended, oldest first, until none is left.
func TestMakeRoomEndsParkedChromes(t *testing.T) {
	sessions := &fakeSessions{short: true}
	m := newManager(t, 0, sessions, fakeCatalogue{})
	a, b := newChrome("a"), newChrome("b")
	for _, c := range []*chrome{a, b} {
		if err := m.Park(t.Context(), c.name, c, nil); err != nil {
			t.Fatal(err)
		}
	}
	m.FreeCapacity(t.Context())
	<-a.done
	<-b.done
	if n := m.Counts().Parked; n != 0 {
		t.Errorf("%d Chromes are parked", n)
	}
}
