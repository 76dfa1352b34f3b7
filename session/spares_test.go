package session

import (
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// newSpareRig makes a rig with n spares.
func newSpareRig(t *testing.T, n int, change func(*Config)) *rig {
	t.Helper()
	r := newRig(t, func(c *Config) {
		c.Spares = pool.Limits{Size: n, Age: time.Hour}
		if change != nil {
			change(c)
		}
	})
	if err := recovered(t.Context(), r.Service); err != nil {
		t.Fatal(err)
	}
	r.awaitSpares(n)
	return r
}

// awaitSpares waits until there are n spares.
func (r *rig) awaitSpares(n int) {
	r.t.Helper()
	await(r.t, "the spares are ready", func() bool { return r.Counts().Spares == n })
}

// Fresh sessions and restores take a spare, and a new spare replaces it. The report names
// the restore path.
func TestSpares(t *testing.T) {
	r := newSpareRig(t, 1, nil)
	first := r.browsers.last()
	id := r.create(alice, nil).ID
	r.awaitSpares(1)
	if all := r.browsers.all(); len(all) != 2 || all[0] != first || first.dead() {
		t.Errorf("%d Chromes were started", len(all))
	}
	next := r.browsers.last()
	snap := r.end(alice, id, asDefault).Snapshot.ID
	info := r.create(alice, fromAlice)
	if p := info.Restored; p.Path != restore.PathWarm || p.Mode != "filesystem" || p.FallbackReason != "" || p.SnapshotID != snap {
		t.Errorf("%+v", p)
	}
	if next.restored.Datadir != state.DatadirClean || next.dead() {
		t.Error("the environment was not loaded into the spare")
	}
	r.end(alice, info.ID, none)
	r.awaitSpares(1)
	if r.dirs() != 1 {
		t.Errorf("%d run directories beside one spare", r.dirs())
	}
	if err := r.Close(t.Context()); err != nil || r.dirs() != 0 {
		t.Errorf("%d run directories after Close, %v", r.dirs(), err)
	}
}

// If a spare cannot be used or fails, a cold start follows and the report says why.
// Nothing of the spare is left.
func TestSpareCannotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		before func(*rig)
		ask    func(*request.Create)
		reason string
	}{
		"none ready": {func(r *rig) {
			r.short.Store(true) // otherwise another one would start
			r.browsers.last().die()
			r.awaitSpares(0)
		}, nil, "no spare"},
		"set at the start": {nil, func(c *request.Create) { c.Overrides.UserAgent, c.Overrides.Timezone = "Other/1", "Asia/Tokyo" }, "user_agent, timezone"},
		"dies": {func(r *rig) {
			spare := r.browsers.last()
			r.browsers.on("restored", func(c *fakeChrome) error {
				if c == spare {
					return fault.New(fault.BrowserFailed, "fake", "it died")
				}
				return nil
			})
		}, nil, "it died"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newSpareRig(t, 1, nil)
			r.saved(alice, asDefault)
			r.awaitSpares(1)
			if test.before != nil {
				test.before(r)
			}
			info := r.create(alice, func(c *request.Create) {
				fromAlice(c)
				if test.ask != nil {
					test.ask(c)
				}
			})
			if p := info.Restored; p.Path != restore.PathCold || !strings.Contains(p.FallbackReason, test.reason) {
				t.Errorf("%+v", p)
			}
			r.short.Store(false)
			r.capacity.Replenish()
			r.awaitSpares(1)
			await(t, "two run directories", func() bool { return r.dirs() == 2 })
		})
	}
}

// An archive's overrides are known only when it is unpacked. A spare that was started
// without them is not used.
func TestASpareForOtherOverrides(t *testing.T) {
	r := newSpareRig(t, 1, nil)
	id := r.create(alice, nil).ID
	r.browsers.all()[0].reads = func(doc *state.Document) { doc.Overrides.UserAgent = "Other/1" }
	r.end(alice, id, asDefault)
	r.awaitSpares(1)
	spare := r.browsers.last()
	info := r.create(alice, fromAlice)
	if p := info.Restored; p.Path != restore.PathCold || !strings.Contains(p.FallbackReason, "user_agent") {
		t.Errorf("%+v", p)
	}
	if !spare.dead() {
		t.Error("the spare still runs")
	}
	await(t, "two run directories", func() bool { return r.dirs() == 2 })
}

// A spare uses a slot that no session has. If memory is short there is no spare.
func TestSparesGiveWay(t *testing.T) {
	r := newSpareRig(t, 2, func(c *Config) { c.MaxSessions = 2 })
	one := r.create(alice, nil).ID
	r.awaitSpares(1)
	two := r.create(alice, func(c *request.Create) { c.Overrides.Timezone = "Asia/Tokyo" }).ID // no spare has this timezone
	r.awaitSpares(0)
	r.end(alice, one, none)
	r.end(alice, two, none)
	r.awaitSpares(2)
	r.short.Store(true)
	id := r.create(alice, func(c *request.Create) { c.Overrides.Timezone = "Asia/Tokyo" }).ID
	r.awaitSpares(0)
	r.end(alice, id, none)
	if n := r.Counts().Spares; n != 0 {
		t.Errorf("%d spares although memory is short", n)
	}
}

// A user that keeps the processors busy leaves the spares to others.
func TestSpareOfBusyUser(t *testing.T) {
	r := newSpareRig(t, 1, nil)
	spare := r.browsers.last()
	r.browsers.mu.Lock()
	r.browsers.yielding = profiles.OwnerOf("alice")
	r.browsers.mu.Unlock()
	info := r.create(alice, nil)
	if info.UserID != "alice" {
		t.Fatalf("the user is %q", info.UserID)
	}
	if n := r.Counts().Spares; n != 1 || r.browsers.last() == spare {
		t.Errorf("%d spares are left", n)
	}
	r.end(alice, info.ID, none)
	r.browsers.mu.Lock()
	r.browsers.yielding = profiles.OwnerOf("bob")
	r.browsers.mu.Unlock()
	before := len(r.browsers.all())
	r.create(alice, nil)
	r.awaitSpares(1) // the next one
	if n := len(r.browsers.all()); n != before+1 {
		t.Errorf("%d Chromes were started for a create of another user with a spare", n-before)
	}
}
