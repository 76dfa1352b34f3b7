package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/autosave"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/snapshot/faultstore"
	"github.com/stasisd/stasis/state"
)

// restored makes a session from another's snapshot, with one cookie. It is restarted
// after crashes.
func (r *rig) restored() (id string) {
	r.t.Helper()
	from, _ := r.saved(alice, filesystem)
	return r.create(alice, func(c *request.Create) { onCrash(c); c.FromSession = from }).ID
}

// writeUnreadable writes unreadable files into a Chrome's profile.
func (r *rig) writeUnreadable(at time.Time, files ...string) {
	r.t.Helper()
	for _, name := range files {
		path := filepath.Join(profile.Path(r.browsers.last().dir.Profile()), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("half of it"), 0o600), os.Chtimes(path, at, at)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// Each crash of a session restores what its snapshot had read, unless Chrome has written
// newer data. The report of the first restart does not hide the snapshot.
func TestCrashesRestoreLastReading(t *testing.T) {
	r := newRig(t, nil)
	id := r.restored()
	for n := range maxRestarts {
		r.crashChrome(id)
		if doc := r.browsers.last().restored; !doc.Complete || len(doc.Cookies) != 1 || len(doc.Doubts) > 0 {
			t.Errorf("crash %d restores %d cookies, complete: %t, doubts %q", n+1, len(doc.Cookies), doc.Complete, doubts(doc))
		}
	}
}

// So does a rescue after a restart.
func TestKilledAfterARestart(t *testing.T) {
	r := newRig(t, nil)
	id := r.restored()
	r.crashChrome(id)
	r.kill()
	r.Service = r.daemon(nil)
	if err := recovered(t.Context(), r.Service); err != nil {
		t.Fatal(err)
	}
	row, err := r.catalogue.NewestSnapshot(t.Context(), id)
	if err != nil || row.Label == "" {
		t.Fatalf("%+v, %v", row, err)
	}
	if doc, err := r.snapshots.Document(t.Context(), row, "read"); err != nil || !doc.Complete || len(doc.Cookies) != 1 {
		t.Errorf("%+v, %v", doc, err)
	}
}

// What Chrome wrote before a restart is newer than what the session began with. Here it
// is an unreadable cookie database, so the last reading is used with a doubt.
func TestCookiesWrittenBeforeARestart(t *testing.T) {
	r := newRig(t, nil)
	id := r.restored()
	r.writeUnreadable(r.clock.add(time.Minute), "Cookies")
	r.clock.add(time.Minute)
	for n := range 2 {
		r.crashChrome(id)
		if got := doubts(r.browsers.last().restored); len(got) != 1 || got[0] != state.ComponentCookies {
			t.Errorf("crash %d: doubts %q", n+1, got)
		}
	}
	// A database that came with the snapshot is not newer.
	id = r.restored()
	r.writeUnreadable(r.clock.add(-time.Hour), "Cookies")
	r.clock.add(time.Hour)
	r.crashChrome(id)
	if got := doubts(r.browsers.last().restored); len(got) > 0 {
		t.Errorf("a cookie database from the snapshot: doubts %q", got)
	}
}

// If no Chrome starts after a crash, the save has the last reading, although the failed
// Chrome has written since.
func TestFailedRestartSavesLastReading(t *testing.T) {
	r := newRig(t, nil)
	id := r.restored()
	r.browsers.on("restored", func(c *fakeChrome) error {
		path := filepath.Join(profile.Path(c.dir.Profile()), "Cookies")
		return errors.Join(errBroken, os.WriteFile(path, []byte("an empty one"), 0o600))
	})
	r.crashChrome(id)
	row, err := r.catalogue.NewestSnapshot(t.Context(), id)
	if err != nil || !row.Rescue || row.Label == "" {
		t.Fatalf("%+v, %v", row, err)
	}
	doc, err := r.snapshots.Document(t.Context(), row, "read")
	if err != nil || !doc.Complete || len(doc.Cookies) != 1 || len(doc.Doubts) > 0 {
		t.Errorf("%d cookies, doubts %q, %v", len(doc.Cookies), doubts(doc), err)
	}
}

// If a crash interrupts a checkpoint and the session survives, the error says so.
// Automatic checkpoints are retried soon.
func TestCheckpointInterruptedByCrash(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) { onCrash(c); autoSaveEvery(time.Hour, 1)(c) }).ID
	l := r.sessions.Find(id)
	r.browsers.on("copy", func(c *fakeChrome) error {
		c.die()
		await(t, "the crash is handled", func() bool {
			taken := false
			return l.ask(t.Context(), func() error { taken = l.ending != nil; return nil }) == nil && taken
		})
		return errBroken
	})
	_, err := r.Checkpoint(t.Context(), alice, id, plain)
	if fault.CodeOf(err) != fault.BrowserFailed {
		t.Errorf("%s: %v", fault.CodeOf(err), err)
	}
	r.checkpointWhenBack(id)
	r.rewrite(r.browsers.last(), "later") // otherwise there is nothing to copy
	if wait, _ := l.autosave(autosave.Settings{Interval: time.Hour, Keep: 1}, false).Save(t.Context()); wait != 5*time.Second {
		t.Errorf("the next automatic checkpoint is due in %v", wait)
	}
}

// checkpointWhenBack waits for a restart by making another checkpoint, whose Chrome
// lives.
func (r *rig) checkpointWhenBack(id string) {
	r.t.Helper()
	cut := r.browsers.steps["copy"]
	r.browsers.works()
	r.checkpoint(id, plain)
	r.browsers.on("copy", cut)
}

// A checkpoint that meets an ending is also retried soon, because the ending may fail.
func TestAutoSaveDuringEnding(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, autoSaveEvery(time.Hour, 1)).ID
	l := r.sessions.Find(id)
	began, goOn := make(chan struct{}), make(chan struct{})
	r.browsers.on("capture", func(*fakeChrome) error { close(began); <-goOn; return errBroken })
	ended := make(chan error, 1)
	go func() { _, err := r.End(t.Context(), alice, id, filesystem); ended <- err }()
	<-began
	if wait, _ := l.autosave(autosave.Settings{Interval: time.Hour, Keep: 1}, false).Save(t.Context()); wait != 5*time.Second {
		t.Errorf("the next automatic checkpoint is due in %v", wait)
	}
	close(goOn)
	if err := <-ended; err == nil {
		t.Error("the session was saved")
	}
}

// A resume, a create from the session and an end wait while the data of the session's dead
// Chrome is being saved. They then get the rescue
// snapshot.
func TestCallsWaitForCrash(t *testing.T) {
	resume := func(r *rig, id string) (string, error) {
		_, err := r.Resume(r.t.Context(), alice, id, "")
		return r.restoredFrom(id), err
	}
	create := func(r *rig, id string) (string, error) {
		info, err := r.Create(r.t.Context(), alice, newCreate(func(c *request.Create) { c.FromSession = id }))
		return r.restoredFrom(info.ID), err
	}
	end := func(r *rig, id string, by request.End) (string, error) {
		a, err := r.End(r.t.Context(), alice, id, by)
		if a.Deleted || a.Snapshot == nil {
			return "", err
		}
		return a.Snapshot.ID, err
	}
	for what, call := range map[string]func(r *rig, id string) (snapshotID string, err error){
		"resume": resume, "create": create,
		"end with a save":    func(r *rig, id string) (string, error) { return end(r, id, filesystem) },
		"end without a save": func(r *rig, id string) (string, error) { return end(r, id, none) },
	} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, nil)
			id := r.create(alice, nil).ID
			used, err := r.duringRescue(id, func() (string, error) { return call(r, id) })
			if err != nil {
				t.Fatal(err)
			}
			if snap, err := r.catalogue.NewestSnapshot(t.Context(), id); err != nil || !snap.Rescue || snap.ID != used {
				t.Errorf("got snapshot %q, want %q, %v", used, snap.ID, err)
			}
		})
	}
}

// If the data of a crashed session cannot be saved, an end that has waited tries it again.
func TestEndAfterUnsavedCrash(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.store.FailAt(1, faultstore.Refuse, errBroken)
	r.browsers.last().die()
	await(t, "the save of the crashed session has failed", func() bool {
		info, err := r.Get(t.Context(), alice, id)
		return err == nil && info.Reason.Code == profiles.ReasonCrashKept
	})
	r.store.FailAt(0, faultstore.Refuse, nil)
	r.end(alice, id, filesystem)
}

// What was saved after a crash may lack a new login. An end after it replaces a default only if
// the caller insists. Where there is no default, there is nothing to lose.
func TestDefaultAfterCrash(t *testing.T) {
	r := newRig(t, nil)
	crashed := func() (id string) {
		id = r.create(alice, nil).ID
		r.browsers.last().die()
		await(t, "the crashed session is saved", func() bool {
			info, err := r.Get(t.Context(), alice, id)
			return err == nil && !info.EndedAt.IsZero() && strings.Contains(string(info.Outcome), `"rescue":true`)
		})
		return id
	}
	end := func(id string, e request.End) save.EndAnswer {
		t.Helper()
		got, err := r.End(t.Context(), alice, id, e)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := crashed()
	if got := end(first, asDefault); got.Default == nil || !got.Default.Moved {
		t.Errorf("without a default: %+v", got.Default)
	}
	id := crashed()
	got := end(id, asDefault)
	if got.Success || got.Default == nil || got.Default.Moved || !strings.Contains(got.Message, "default_conflict=overwrite") {
		t.Errorf("with a default: %+v, %+v", got, got.Default)
	}
	if got := end(id, request.End{Mode: save.Filesystem, SaveAsDefault: true, Conflict: save.Overwrite}); got.Default == nil || !got.Default.Moved {
		t.Errorf("with overwrite: %+v", got.Default)
	}
}

// A create that has waited for a crashed session of which nothing is saved is notified that it
// has ended.
func TestCreateFromDiscardedCrash(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, func(c *request.Create) { c.DiscardOnEnd = true }).ID
	began, goOn := make(chan struct{}), make(chan struct{})
	r.browsers.on("kill", func(*fakeChrome) error { close(began); <-goOn; return nil })
	_, err := r.duringCrash(id, began, goOn, func() (string, error) {
		_, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.FromSession = id }))
		return "", err
	})
	wantCode(t, err, fault.NoSnapshot)
	if err == nil || !strings.Contains(fault.MessageOf(err), "it has ended") {
		t.Errorf("got %v", err)
	}
}

// duringRescue kills a session's Chrome and makes a call while its data is being saved. It
// fails the test if the call does not wait.
func (r *rig) duringRescue(id string, call func() (string, error)) (snapshotID string, err error) {
	r.t.Helper()
	began, goOn := make(chan struct{}), make(chan struct{})
	r.catalogue.once("Commit", func() { close(began); <-goOn })
	return r.duringCrash(id, began, goOn, call)
}

// duringCrash is duringRescue for a crash whose handling closes began, and then waits for
// goOn.
func (r *rig) duringCrash(id string, began <-chan struct{}, goOn chan<- struct{}, call func() (string, error)) (snapshotID string, err error) {
	r.t.Helper()
	l := r.sessions.Find(id)
	r.browsers.last().die()
	<-began
	called := make(chan struct{})
	go func() { defer close(called); snapshotID, err = call() }()
	await(r.t, "a call waits", func() bool {
		select {
		case <-called:
			r.t.Errorf("the call did not wait: %v", err)
			return true
		default:
		}
		waits := false
		err := l.ask(r.t.Context(), func() error { waits = l.ending != nil && len(l.ending.waiters) > 0; return nil })
		return err != nil || waits
	})
	close(goOn)
	<-called
	return snapshotID, err
}

// restoredFrom returns the ID of the snapshot that a session was restored from; "" if none.
func (r *rig) restoredFrom(id string) string {
	r.t.Helper()
	info, err := r.Get(r.t.Context(), alice, id)
	if err != nil || info.Restored == nil {
		return ""
	}
	return info.Restored.SnapshotID
}

func doubts(doc state.Document) (of []string) {
	for _, d := range doc.Doubts {
		of = append(of, d.Component+d.Origin)
	}
	return of
}

// While what a crashed session left is being saved, the session is in error with its rescue
// under way, so that a caller that polls knows that the outcome is still open.
func TestCrashIsRescuing(t *testing.T) {
	r := newRig(t, nil)
	for name, test := range map[string]struct {
		discard bool
		want    bool
	}{"saved": {false, true}, "discarded": {true, false}} {
		id := r.create(alice, func(c *request.Create) { c.DiscardOnEnd = test.discard }).ID
		began, goOn := make(chan struct{}), make(chan struct{})
		r.browsers.on("kill", func(*fakeChrome) error { close(began); <-goOn; return nil })
		r.browsers.last().die()
		await(t, "the crash is noticed", func() bool { return r.status(id) == profiles.StatusError })
		info, err := r.Get(t.Context(), alice, id)
		if err != nil || info.Rescuing != test.want || !info.EndedAt.IsZero() {
			t.Errorf("%s: rescuing %v, ended %v, %v", name, info.Rescuing, info.EndedAt, err)
		}
		<-began
		close(goOn)
		await(t, "the session has ended", func() bool {
			info, err = r.Get(t.Context(), alice, id)
			return err == nil && !info.EndedAt.IsZero()
		})
		if info.Rescuing {
			t.Errorf("%s: it has ended, and is still being rescued", name)
		}
	}
}
