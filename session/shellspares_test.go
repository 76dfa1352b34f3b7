package session

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
)

// Spares of an engine are kept once a create has used it, in the slots that the other
// engine's spares leave. A spare serves only its own engine, for fresh sessions and
// restores. Some overrides of the shell, such as the locale, can only be set at its
// start.
func TestSparesOfBothEngines(t *testing.T) {
	r := newSpareRig(t, 1, func(c *Config) {
		c.MaxSessions = 3
		c.ShellSpares = pool.Limits{Size: 1, Age: time.Hour}
	})
	_, snap := r.saved(alice, asDefault)
	r.awaitSpares(1)
	r.end(alice, r.create(alice, inShell).ID, none)
	r.awaitSpares(2)
	id := r.create(alice, func(c *request.Create) { fromAlice(c); inShell(c) })
	// The spares may have started in either order.
	inOne := slices.ContainsFunc(r.browsers.all(), func(c *fakeChrome) bool { return c.Engine() == browser.EngineShell && c.restored.Datadir != "" })
	if p := id.Restored; p.Path != restore.PathWarm || p.SnapshotID != snap || p.FallbackReason != "" || !inOne || id.Engine != browser.EngineShell {
		t.Errorf("%s: %+v", id.Engine, p)
	}
	r.awaitSpares(2)
	other := r.create(alice, func(c *request.Create) { inShell(c); fromAlice(c); c.Overrides.Locale = "de-DE" })
	if p := other.Restored; p.Path != restore.PathCold || !strings.Contains(p.FallbackReason, "locale") {
		t.Errorf("%+v", p)
	}
	// Two of three slots are taken.
	r.awaitSpares(1)
	chrome := r.create(alice, func(c *request.Create) { c.Overrides.Timezone = "Asia/Tokyo" })
	r.awaitSpares(0)
	for _, id := range []string{id.ID, other.ID, chrome.ID} {
		r.end(alice, id, none)
	}
	r.awaitSpares(2)
}

// A shell that cannot load the profile while it runs is started on it. The report says
// why, for the spare and for the shell that was started in its place.
func TestShellThatCannotLoadProfile(t *testing.T) {
	r := newSpareRig(t, 0, func(c *Config) { c.ShellSpares = pool.Limits{Size: 1, Age: time.Hour} })
	r.saved(alice, asDefault)
	r.end(alice, r.create(alice, inShell).ID, none)
	r.awaitSpares(1)
	var failures atomic.Int32
	r.browsers.on("restored", func(*fakeChrome) error {
		if failures.Add(1) <= 2 {
			return fault.New(fault.BrowserFailed, "fake", "it already has Later")
		}
		return nil
	})
	p := r.create(alice, func(c *request.Create) { fromAlice(c); inShell(c) }).Restored
	if p.Path != restore.PathCold || strings.Count(p.FallbackReason, "it already has Later") != 2 || failures.Load() != 3 {
		t.Errorf("%+v", p)
	}
	r.awaitSpares(1)
	await(t, "the run directories of the session and of a spare", func() bool { return r.dirs() == 2 })
}
