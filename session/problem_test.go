package session

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
)

// damageCookies damages the cookie database in a Chrome's profile.
func (r *rig) damageCookies(c *fakeChrome) {
	r.replace(c, "Cookies", strings.Repeat("no database ", 1000))
}

// Automatic checkpoints with damage are reported as failures and replace no good one.
// Nothing is stored again while nothing changes. A resume uses the newest good one and
// says so.
func TestAutoSaveDamaged(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, autoSaveEvery(5*time.Millisecond, 2)).ID
	chrome := r.browsers.last()
	first := r.awaitNewer(id, "")
	r.rewrite(chrome, "changed")
	good := r.awaitNewer(id, first)
	r.damageCookies(chrome)
	await(t, "failures", func() bool { return r.autoSaved(id).Failures > 2 })
	is, a := r.autoCheckpoints(id), r.autoSaved(id)
	if len(is) > 3 || !slices.Contains(is, first) || !slices.Contains(is, good) || a.SnapshotID != good || !strings.Contains(a.Error, "damaged") {
		t.Errorf("got %v, of which %s and %s are good; %+v", is, first, good, a)
	}
	await(t, "another checkpoint is tried", func() bool { return r.autoSaved(id).Failures > a.Failures+2 })
	if now := r.autoCheckpoints(id); !slices.Equal(now, is) {
		t.Errorf("got %v, before %v", now, is)
	}
	r.end(alice, id, none)
	if _, err := r.Resume(t.Context(), alice, id, ""); err != nil {
		t.Fatal(err)
	}
	info, err := r.Get(t.Context(), alice, id)
	if err != nil || info.Restored.SnapshotID != good || !strings.Contains(strings.Join(info.Restored.Warnings, "\n"), is[0]) {
		t.Errorf("%+v, %v", info.Restored, err)
	}
}

// The newest damaged checkpoint is used if there is no good one. Its own ID always
// restores it.
func TestOnlyDamaged(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.damageCookies(r.browsers.last())
	a := r.checkpoint(id, plain)
	got, err := r.restorer.Resolve(t.Context(), alice, restore.SourceRequest{FromSession: id})
	if err != nil || got.Snapshot.ID != a.Snapshot.ID {
		t.Errorf("%+v, %v", got, err)
	}
}

// If there are good checkpoints, only the newest damaged one stays.
func TestPruneDamaged(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	for n, damaged := range []bool{false, false, false, true, true, false, true, true} {
		row := profiles.Snapshot{ID: strings.Repeat("abcdefgh"[n:n+1], 8), SessionID: id, UserID: "alice", Mode: "filesystem", Auto: true,
			CreatedAt: r.deps.Now().UTC(), Report: profiles.JSON(library.Report{Damaged: damaged})}
		if _, err := r.catalogue.Commit(t.Context(), profiles.Commit{Snapshot: row}); err != nil {
			t.Fatal(err)
		}
	}
	r.pruner.PruneCheckpoints(t.Context(), id, 2)
	var left string
	for _, id := range r.autoCheckpoints(id) {
		left += id[:1]
	}
	if left != "hfc" {
		t.Errorf("%s are left", left)
	}
}

// A default does not move to a checkpoint that could not be read in time. It does not
// move either when a later checkpoint finds nothing changed, until that can be read.
func TestCheckpointUnread(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.disk.slow.Store(true)
	a := r.checkpoint(id, toDefault)
	b := r.checkpoint(id, toDefault)
	for _, got := range []save.CheckpointAnswer{a, b} {
		if got.Default == nil || got.Default.Moved || got.Default.Reason != save.UnreadCopy || got.Snapshot.ID != a.Snapshot.ID {
			t.Errorf("%+v, %+v", got, got.Default)
		}
	}
	r.disk.slow.Store(false)
	if c := r.checkpoint(id, toDefault); !c.Unchanged || !c.Default.Moved || c.Snapshot.ID != a.Snapshot.ID {
		t.Errorf("%+v, %+v", c, c.Default)
	}
}

// No trigger starts an automatic checkpoint before the retry of a failed one.
func TestRetryDelaysOtherTriggers(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, autoSaveEvery(time.Hour, 1)).ID
	r.browsers.fails(fault.New(fault.StoreFull, "fake", "no space"), "precopy", "copy")
	saver := r.sessions.Find(id).autosave(autosave.Settings{Interval: time.Minute, Keep: 1}, false)
	for n := range 3 {
		wait, least := saver.Save(t.Context())
		if want := 5 * time.Second << n; wait != want || least != want {
			t.Errorf("retry in %v, other triggers in %v; want %v", wait, least, want)
		}
	}
}
