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
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/snapshot/faultstore"
	"github.com/stasisd/stasis/state"
)

var (
	toDefault = request.Checkpoint{SaveAsDefault: true, Conflict: save.Keep}
	plain     = request.Checkpoint{Conflict: save.Keep}
)

func (r *rig) checkpoint(id string, asked request.Checkpoint) save.CheckpointAnswer {
	r.t.Helper()
	a, err := r.Checkpoint(r.t.Context(), alice, id, asked)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

// rewrite makes the session's Chrome write something.
func (r *rig) rewrite(c *fakeChrome, what string) {
	r.t.Helper()
	r.replace(c, "Files", what)
}

// replace atomically replaces a file in a Chrome's profile.
func (r *rig) replace(c *fakeChrome, name, what string) {
	r.t.Helper()
	made := filepath.Join(r.t.TempDir(), name)
	if err := os.WriteFile(made, []byte(what), 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(made, filepath.Join(profile.Path(c.dir.Profile()), name)); err != nil {
		r.t.Fatal(err)
	}
}

// A checkpoint is a complete snapshot. The session, its Chrome and its clients continue,
// and its later saves follow the default that it moved.
func TestCheckpoint(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	chrome := r.browsers.last()
	defer r.attach(id)()
	first := r.checkpoint(id, request.Checkpoint{SaveAsDefault: true, Conflict: save.Keep, Label: "before"})
	if s := first.Snapshot; s.Datadir != "live" || s.Mode != "filesystem" || s.Label != "before" || s.SessionID != id || len(s.Components) == 0 {
		t.Errorf("%+v", s)
	}
	if !first.Success || first.Unchanged || first.PausedMS != 1 || !first.Default.Moved || first.Default.Version != 1 {
		t.Errorf("%+v", first)
	}
	if chrome.Frozen() || chrome.dead() || r.Counts().Live != 1 || r.status(id) != profiles.StatusRunning || chrome.code != 0 {
		t.Errorf("frozen %t, dead %t, %+v, clients closed with %d", chrome.Frozen(), chrome.dead(), r.Counts(), chrome.code)
	}
	// It can be restored completely while the session lives, and the session holds it.
	other := r.create(alice, fromAlice)
	if doc := r.browsers.last().restored; doc.Datadir != state.DatadirLive || !doc.Complete || other.Restored.SnapshotID != first.Snapshot.ID {
		t.Errorf("restored %s, complete %t, %+v", doc.Datadir, doc.Complete, other.Restored)
	}
	_, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) { fromAlice(c); c.OnLive = request.OnLiveFail }))
	wantCode(t, err, fault.EnvironmentInUse)
	r.end(alice, other.ID, none)

	r.rewrite(chrome, "more")
	second := r.checkpoint(id, toDefault)
	if second.Unchanged || !second.Default.Moved || second.Default.Version != 2 {
		t.Errorf("%+v", second)
	}
	rec, err := r.catalogue.Session(t.Context(), id)
	if err != nil || rec.BaseVersion != 2 || rec.Outcome != nil {
		t.Errorf("%+v, %v", rec, err)
	}
	last := r.end(alice, id, asDefault)
	if !last.Default.Moved || last.Default.Version != 3 {
		t.Errorf("%+v", last.Default)
	}
	if r.dirs() != 0 {
		t.Errorf("%d run directories", r.dirs())
	}
	r.wantSnapshots(first.Snapshot.ID, second.Snapshot.ID, last.Snapshot.ID)
}

// A session that started from a default keeps one that another session moved meanwhile,
// unless the request overwrites it.
func TestCheckpointLosesDefault(t *testing.T) {
	r := newRig(t, nil)
	r.saved(alice, asDefault)
	id := r.create(alice, fromAlice).ID
	_, winner := r.saved(alice, asDefault)
	a := r.checkpoint(id, toDefault)
	if a.Success || a.Code != fault.VersionConflict || a.Default.Moved || a.Default.Version != 2 || !strings.Contains(a.Default.Reason, winner) && a.Default.Reason == "" {
		t.Errorf("%+v", a.Default)
	}
	// The state is unchanged, but the request differs.
	b := r.checkpoint(id, request.Checkpoint{SaveAsDefault: true, Conflict: save.Overwrite})
	if !b.Unchanged || b.Snapshot.ID != a.Snapshot.ID || !b.Default.Moved || b.Default.Version != 3 || !b.Success {
		t.Errorf("%+v %+v", b, b.Default)
	}
	if c := r.checkpoint(id, toDefault); !c.Unchanged || c.Default.Moved || c.Default.Version != 3 || !c.Success {
		t.Errorf("%+v %+v", c, c.Default)
	}
	if e := r.end(alice, id, asDefault); !e.Default.Moved || e.Default.Version != 4 {
		t.Errorf("%+v", e.Default)
	}
}

// Unchanged state is not stored again. It is stored for another label, changed state or a
// deleted snapshot.
func TestCheckpointUnchanged(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	chrome := r.browsers.last()
	first := r.checkpoint(id, plain).Snapshot.ID
	same := func(want bool, what string, asked request.Checkpoint) save.CheckpointAnswer {
		t.Helper()
		a := r.checkpoint(id, asked)
		if a.Unchanged != want {
			t.Errorf("%s: unchanged %t", what, a.Unchanged)
		}
		return a
	}
	if a := same(true, "nothing", plain); a.Snapshot.ID != first || a.Default != nil {
		t.Errorf("%+v", a)
	}
	same(false, "a label", request.Checkpoint{Label: "x"})
	same(true, "the same label", request.Checkpoint{Label: "x"})
	chrome.reads = func(doc *state.Document) { doc.Cookies = nil }
	same(false, "cookies", plain)
	r.rewrite(chrome, "other")
	gone := same(false, "files", plain).Snapshot.ID
	if err := r.library.DeleteSnapshot(t.Context(), alice, gone); err != nil {
		t.Fatal(err)
	}
	same(false, "the snapshot is gone", plain)
	// If nothing can have changed, Chrome is not even frozen.
	await(t, "a checkpoint without a pause", func() bool {
		a := same(true, "nothing again", plain)
		return a.PausedMS == 0
	})
}

// A checkpoint that fails at any step returns an error, leaves nothing behind and
// disturbs nothing. The next one works.
func TestCheckpointFails(t *testing.T) {
	broken := fault.New(fault.BrowserFailed, "fake", "broken on purpose")
	full := fault.New(fault.StoreFull, "fake", "no space")
	step := func(err error, steps ...string) func(*rig) {
		return func(r *rig) { r.browsers.fails(err, steps...) }
	}
	store := func(n int) func(*rig) {
		return func(r *rig) { r.store.FailAt(n, faultstore.Refuse, full) }
	}
	for name, test := range map[string]struct {
		damage func(*rig)
		code   fault.Code
	}{
		"directory":  {step(errBroken, "dir"), fault.SaveFailed},
		"listing":    {step(errBroken, "environment"), fault.SaveFailed},
		"first copy": {step(full, "precopy"), fault.StoreFull},
		"capture":    {step(broken, "capture"), fault.BrowserFailed},
		"copy":       {step(broken, "copy"), fault.BrowserFailed},
		"too slow":   {step(fault.New(fault.Timeout, "fake", ""), "copy"), fault.Timeout},
		"space":      {store(1), fault.StoreFull},
		"health":     {store(2), fault.StoreFull},
		"store":      {store(3), fault.StoreFull},
		"commit":     {func(r *rig) { r.catalogue.fails(full, "Commit") }, fault.StoreFull},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			_, old := r.saved(alice, asDefault)
			id := r.create(alice, fromAlice).ID
			chrome := r.browsers.last()
			kept := []string{old}
			if name != "directory" { // the others have the replica of an earlier one
				kept = append(kept, r.checkpoint(id, plain).Snapshot.ID)
				r.rewrite(chrome, "changed")
			}
			test.damage(r)
			a, err := r.Checkpoint(t.Context(), alice, id, toDefault)
			wantCode(t, err, test.code)
			if a.Success || a.Snapshot.ID != "" {
				t.Errorf("it answers %+v", a)
			}
			r.browsers.works()
			r.store.FailAt(0, faultstore.Refuse, nil)
			r.catalogue.works()
			r.wantSnapshots(kept...)
			if chrome.dead() || chrome.Frozen() || r.dirs() != 1 {
				t.Errorf("dead %t, frozen %t, %d run directories", chrome.dead(), chrome.Frozen(), r.dirs())
			}
			d, err := r.catalogue.Default(t.Context(), "alice")
			if err != nil || d.SnapshotID != old {
				t.Errorf("the default is %+v, %v", d, err)
			}
			r.wantSnapshots(append(kept, r.checkpoint(id, toDefault).Snapshot.ID)...)
		})
	}
}

// A checkpoint that a caller asked for copies again if Chrome's pause was too short, three times
// at most.
func TestCheckpointTriesAgain(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	copies, slow := 0, 2
	r.browsers.on("copy", func(*fakeChrome) error {
		if copies++; copies <= slow {
			return fault.New(fault.Timeout, "fake", "")
		}
		return nil
	})
	if a := r.checkpoint(id, plain); !a.Success || copies != 3 {
		t.Errorf("%+v after %d copies", a, copies)
	}
	copies, slow = 0, 3
	r.rewrite(r.browsers.last(), "changed")
	_, err := r.Checkpoint(t.Context(), alice, id, plain)
	if wantCode(t, err, fault.Timeout); copies != 3 {
		t.Errorf("it failed after %d copies", copies)
	}
}

// A caller that may not use the session cannot checkpoint it. The error says why a
// session cannot be saved.
func TestCheckpointRefused(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	_, err := r.Checkpoint(t.Context(), bob, id, plain)
	wantCode(t, err, fault.SessionNotFound)
	readOnly := r.create(alice, func(c *request.Create) { c.ReadOnly = true }).ID
	_, err = r.Checkpoint(t.Context(), alice, readOnly, plain)
	wantCode(t, err, fault.Unsupported)
	r.end(alice, id, none)
	_, err = r.Checkpoint(t.Context(), alice, id, plain)
	wantCode(t, err, fault.SessionNotRunning)
	r.wantSnapshots()
}

// Damage in the replica is kept and reported, and no default moves to it. The next
// checkpoint copies everything again.
func TestCheckpointDamaged(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	chrome := r.browsers.last()
	jar := filepath.Join(profile.Path(chrome.dir.Profile()), "Cookies")
	if err := os.WriteFile(jar, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	a := r.checkpoint(id, toDefault)
	if a.Default.Moved || a.Default.Reason != save.DamagedCopy || !strings.Contains(strings.Join(a.Snapshot.Warnings, "\n"), "damaged") || r.dirs() != 1 {
		t.Errorf("%+v, %+v, %d run directories", a.Default, a.Snapshot.Warnings, r.dirs())
	}
	if err := os.Remove(jar); err != nil {
		t.Fatal(err)
	}
	if b := r.checkpoint(id, toDefault); b.Unchanged || !b.Default.Moved {
		t.Errorf("%+v", b)
	}
}

// A user's login check runs before the default moves, as at an end.
func TestCheckpointProves(t *testing.T) {
	r := newRig(t, nil)
	if _, err := r.ChangeSettings(t.Context(), alice, "alice", func(s settings.Settings) (settings.Settings, error) {
		s.LoginCheck = &settings.LoginCheck{BeforeDefault: true}
		return s, nil
	}); err != nil {
		t.Fatal(err)
	}
	id := r.create(alice, nil).ID
	chrome := r.browsers.last()
	chrome.loggedOut = true
	for range 2 { // the second one finds nothing changed
		if a := r.checkpoint(id, toDefault); a.Default.Moved || a.Default.Reason != save.LoginCheckFailed || a.Default.LoginCheck == nil {
			t.Errorf("%+v", a.Default)
		}
	}
	chrome.loggedOut = false
	if a := r.checkpoint(id, toDefault); !a.Default.Moved || !a.Default.LoginCheck.LoggedIn {
		t.Errorf("%+v", a.Default)
	}
}

// A paused session can be saved, and is frozen afterwards.
func TestCheckpointPaused(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	chrome := r.browsers.last()
	if _, err := r.Pause(t.Context(), alice, id); err != nil {
		t.Fatal(err)
	}
	r.wantSnapshots(r.checkpoint(id, plain).Snapshot.ID)
	if !chrome.Frozen() || r.status(id) != profiles.StatusPaused {
		t.Errorf("frozen %t, %s", chrome.Frozen(), r.status(id))
	}
}

// Two concurrent checkpoints run one after the other. The second finds nothing changed.
func TestConcurrentCheckpoints(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	answers := make(chan save.CheckpointAnswer, 4)
	for range cap(answers) {
		go func() {
			a, err := r.Checkpoint(t.Context(), alice, id, plain)
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	made := map[string]bool{}
	for range cap(answers) {
		if a := <-answers; !a.Unchanged {
			made[a.Snapshot.ID] = true
		}
	}
	if len(made) != 1 {
		t.Errorf("%d snapshots were made", len(made))
	}
}

// An end takes Chrome from a checkpoint that still needs it. It waits for one that does
// not: that snapshot exists, and the end moves the default on from it.
func TestEndDuringCheckpoint(t *testing.T) {
	for step, code := range map[string]fault.Code{"capture": fault.SessionEnding, "commit": ""} {
		t.Run(step, func(t *testing.T) {
			r := newRig(t, nil)
			id := r.create(alice, nil).ID
			begun, goOn := make(chan struct{}), make(chan struct{})
			stop := func() { close(begun); <-goOn }
			if step == "capture" {
				r.browsers.on("capture", func(*fakeChrome) error { r.browsers.works(); stop(); return errBroken })
			} else {
				r.catalogue.once("Commit", stop)
			}
			result := make(chan error, 1)
			go func() {
				_, err := r.Checkpoint(t.Context(), alice, id, toDefault)
				result <- err
			}()
			<-begun
			ended := make(chan save.EndAnswer, 1)
			go func() {
				a, err := r.End(t.Context(), alice, id, asDefault)
				if err != nil {
					t.Error(err)
				}
				ended <- a
			}()
			await(t, "the end has begun", func() bool {
				_, err := r.Navigate(t.Context(), alice, id, "https://a.example/")
				return fault.Is(err, fault.SessionEnding)
			})
			close(goOn)
			wantCode(t, <-result, code)
			if a := <-ended; !a.Deleted || !a.Default.Moved {
				t.Errorf("%+v", a)
			}
			if r.dirs() != 0 {
				t.Errorf("%d run directories", r.dirs())
			}
		})
	}
}

// If Chrome dies, a checkpoint that has its replica succeeds. The dead Chrome's data is
// rescued after it.
func TestCrashDuringCheckpoint(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.browsers.on("copy", crash)
	_, err := r.Checkpoint(t.Context(), alice, id, plain)
	if code := fault.CodeOf(err); code != fault.SessionEnding && code != fault.BrowserFailed {
		t.Errorf("%v", err)
	}
	await(t, "the session has ended", func() bool { return r.Counts().Live == 0 && r.dirs() == 0 })
	row, err := r.catalogue.NewestSnapshot(t.Context(), id)
	if err != nil || !row.Rescue {
		t.Errorf("%+v, %v", row, err)
	}
}

// A killed daemon's checkpoints stay. What the next daemon rescues is newer than they
// are.
func TestCheckpointsOutliveDaemon(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	kept := r.checkpoint(id, toDefault).Snapshot.ID
	r.rewrite(r.browsers.last(), "later")
	r.kill()
	next := r.daemon(nil)
	if err := recovered(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	row, err := r.catalogue.NewestSnapshot(t.Context(), id)
	if err != nil || !row.Rescue || r.dirs() != 0 {
		t.Errorf("%+v, %v, %d run directories", row, err, r.dirs())
	}
	// A cookie that Chrome had not written yet is restored as the checkpoint read it.
	doc, err := next.snapshots.Document(t.Context(), row, "read")
	if err != nil || !doc.Complete || len(doc.Cookies) != 1 || doc.Datadir != state.DatadirCrash || !strings.Contains(row.Label, kept) {
		t.Errorf("%+v, %q, %v", doc, row.Label, err)
	}
	r.wantSnapshots(kept, row.ID)
	d, err := r.catalogue.Default(t.Context(), "alice")
	if err != nil || d.SnapshotID != kept {
		t.Errorf("the default is %+v, %v", d, err)
	}
}

// A session that is killed right after a restore keeps what was restored. Chrome writes
// applied cookies half a minute later. A Chrome killed during that write has written
// nothing, because its journal rolls it back.
func TestKilledRightAfterRestore(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.checkpoint(id, plain)
	cutOff := func(written time.Duration) {
		now := r.clock.now()
		for name, at := range map[string]time.Time{"Cookies": now.Add(written), "Cookies-journal": now} {
			path := filepath.Join(profile.Path(r.browsers.last().dir.Profile()), name)
			if err := errors.Join(os.WriteFile(path, []byte("half of it"), 0o600), os.Chtimes(path, at, at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for n, before := range []func(){func() {}, func() {}, func() { cutOff(-time.Hour) }, func() { cutOff(time.Second) }} {
		before()
		r.kill()
		r.Service = r.daemon(nil)
		if err := recovered(t.Context(), r.Service); err != nil {
			t.Fatal(err)
		}
		row, err := r.catalogue.NewestSnapshot(t.Context(), id)
		if err != nil || !row.Rescue {
			t.Fatalf("%+v, %v", row, err)
		}
		if doc, err := r.snapshots.Document(t.Context(), row, "read"); err != nil || !doc.Complete || len(doc.Cookies) != 1 || row.Label == "" {
			t.Errorf("after %d kills: %+v, %q, %v", n+1, doc, row.Label, err)
		}
		if _, err := r.Resume(t.Context(), alice, id, ""); err != nil {
			t.Fatal(err)
		}
	}
}
