package session

import (
	"fmt"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/state"
)

// autoSaveEvery requests automatic checkpoints at an interval only.
func autoSaveEvery(interval time.Duration, keep int) func(*request.Create) {
	return func(c *request.Create) { c.AutoSave = &autosave.Settings{Interval: interval, Keep: keep} }
}

// autoCheckpoints returns the automatic checkpoints of a session, newest first.
func (r *rig) autoCheckpoints(id string) (ids []string) {
	r.t.Helper()
	rows, _, err := r.catalogue.Snapshots(r.t.Context(), profiles.SnapshotFilter{SessionID: id})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, row := range rows {
		if row.Auto {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

func (r *rig) autoSaved(id string) autosave.Status {
	r.t.Helper()
	info, err := r.Get(r.t.Context(), alice, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return *info.AutoSaved
}

// awaitNewer waits for an automatic checkpoint other than the last one.
func (r *rig) awaitNewer(id, than string) string {
	r.t.Helper()
	var now string
	await(r.t, "another automatic checkpoint", func() bool {
		now = r.autoSaved(id).SnapshotID
		return now != "" && now != than
	})
	return now
}

// With message, a turn of the conversation is a reason for a checkpoint, although nothing
// else has changed. A step of a turn is no change.
func TestAutoSaveOnMessage(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) {
		c.AutoSave = &autosave.Settings{Interval: time.Hour, Keep: 9, Message: true}
	}).ID
	say := func(kind string) {
		t.Helper()
		if _, err := r.Send(t.Context(), alice, id, agent.MessageRequest{Type: kind, Content: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	say("")
	r.awaitNewer(id, "")
	r.checkpoint(id, plain)
	for kind, changed := range map[string]bool{"THOUGHT": false, "TOOL": false, "DONE": true} {
		if say(kind); r.checkpoint(id, plain).Unchanged == changed {
			t.Errorf("after %s: changed is not %v", kind, changed)
		}
	}
}

// Automatic checkpoints are made if something has changed. Only the newest are kept, and
// no default moves. Requested checkpoints stay.
func TestAutoSave(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, autoSaveEvery(5*time.Millisecond, 2)).ID
	chrome := r.browsers.last()
	last := r.awaitNewer(id, "")
	asked := r.checkpoint(id, plain)
	if asked.Unchanged || asked.Snapshot.Auto {
		t.Errorf("a requested checkpoint is marked automatic: %+v", asked)
	}
	for n := range 4 {
		r.rewrite(chrome, fmt.Sprint("change ", n))
		last = r.awaitNewer(id, last)
	}
	await(t, "the older checkpoints are removed", func() bool { return len(r.autoCheckpoints(id)) <= 2 })
	at := r.autoSaved(id).At
	await(t, "a checkpoint finds the session unchanged", func() bool { return r.autoSaved(id).At.After(at) })
	if ids := r.autoCheckpoints(id); ids[0] != last || len(ids) != 2 {
		t.Errorf("%v are kept, the last one is %s", ids, last)
	}
	if _, err := r.library.Snapshot(t.Context(), alice, asked.Snapshot.ID); err != nil {
		t.Error(err)
	}
	_, err := r.catalogue.Default(t.Context(), "alice")
	wantCode(t, err, fault.DefaultNotFound)
	r.end(alice, id, none)
	r.wantSnapshots(append(r.autoCheckpoints(id), asked.Snapshot.ID)...)
	_, err = r.Create(t.Context(), alice, newCreate(func(c *request.Create) { autoSaveEvery(time.Hour, 1)(c); c.ReadOnly = true }))
	wantCode(t, err, fault.InvalidField)
}

// A full disk is reported and harms neither the session nor earlier saves. Once there is
// space the next checkpoint works.
func TestAutoSaveFails(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, autoSaveEvery(5*time.Millisecond, 3)).ID
	chrome := r.browsers.last()
	good := r.awaitNewer(id, "")
	r.browsers.fails(fault.New(fault.StoreFull, "fake", "no space"), "precopy", "copy")
	r.rewrite(chrome, "changed")
	await(t, "failures", func() bool { return r.autoSaved(id).Failures > 1 })
	if a := r.autoSaved(id); a.SnapshotID != good || a.Error == "" {
		t.Errorf("%+v", a)
	}
	r.wantSnapshots(good)
	if chrome.dead() || chrome.Frozen() {
		t.Errorf("dead %t, frozen %t", chrome.dead(), chrome.Frozen())
	}
	r.browsers.works()
	r.awaitNewer(id, good)
	if a := r.autoSaved(id); a.Failures != 0 || a.Error != "" {
		t.Errorf("%+v", a)
	}
}

// Each reason makes a checkpoint long before the interval ends.
func TestAutoSaveReasons(t *testing.T) {
	for name, test := range map[string]struct {
		reason autosave.Settings
		happen func(c *fakeChrome, n int) // nil: a client connects and disconnects
	}{
		"navigation": {autosave.Settings{Navigation: true}, func(c *fakeChrome, n int) { c.at = fmt.Sprint("https://a.example/", n) }},
		"login": {autosave.Settings{Login: true}, func(c *fakeChrome, n int) {
			c.jar = []state.Cookie{{Name: "session_id", Value: fmt.Sprint(n), Domain: "a.example", Path: "/", HTTPOnly: true, Session: true}}
		}},
		"disconnect": {autosave.Settings{Disconnect: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			test.reason.Interval, test.reason.Keep = time.Hour, 1
			id := r.create(alice, func(c *request.Create) { c.AutoSave = &test.reason }).ID
			chrome := r.browsers.last()
			if test.happen == nil {
				r.attach(id)()
			}
			n := 0
			await(t, "a checkpoint", func() bool {
				if n++; test.happen != nil { // the first reading shows no change
					chrome.mu.Lock()
					test.happen(chrome, n)
					chrome.mu.Unlock()
				}
				return r.autoSaved(id).SnapshotID != ""
			})
		})
	}
}

// A persistent session moves its default with each checkpoint, from the version it moved
// itself.
func TestAutoSavePersists(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) { autoSaveEvery(5*time.Millisecond, 1)(c); c.Persist = true }).ID
	chrome := r.browsers.last()
	first := r.awaitNewer(id, "")
	r.rewrite(chrome, "changed")
	second := r.awaitNewer(id, first)
	d, err := r.catalogue.Default(t.Context(), "alice")
	if err != nil || d.SnapshotID != second {
		t.Errorf("the default is %+v, %v; want %s", d, err, second)
	}
	if a := r.end(alice, id, asDefault); !a.Default.Moved {
		t.Errorf("%+v", a.Default)
	}
}

// Nothing is saved of a paused session, and a crash ends automatic checkpoints.
func TestAutoSavePaused(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, autoSaveEvery(time.Hour, 1)).ID
	if _, err := r.Pause(t.Context(), alice, id); err != nil {
		t.Fatal(err)
	}
	l := r.sessions.Find(id)
	if wait, _ := l.autosave(autosave.Settings{Interval: time.Minute, Keep: 1}, false).Save(t.Context()); wait != time.Minute || len(r.autoCheckpoints(id)) != 0 {
		t.Errorf("next checkpoint in %v, made %v", wait, r.autoCheckpoints(id))
	}
	r.browsers.last().die()
	await(t, "the session has ended", func() bool { return r.Counts().Live == 0 })
}
