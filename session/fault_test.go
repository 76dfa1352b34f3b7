package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
	"github.com/stasisd/stasis/snapshot/storetest"
	"github.com/stasisd/stasis/state"
)

// A save that fails at any step says so, loses nothing, and can be tried again.
func TestSaveFails(t *testing.T) {
	broken := fault.New(fault.BrowserFailed, "fake", "broken on purpose")
	full := fault.New(fault.StoreFull, "fake", "no space")
	step := func(err error, steps ...string) func(*rig) {
		return func(r *rig) { r.browsers.fails(err, steps...) }
	}
	// lostProfile removes the profile while Chrome closes.
	lostProfile := func(r *rig) {
		r.browsers.on("close", func(c *fakeChrome) error {
			return os.Rename(filepath.Join(c.dir.Profile(), profile.Default), filepath.Join(c.dir.Path, "away"))
		})
	}
	away := fault.New(fault.CatalogueUnavailable, "fake", "away")
	for name, test := range map[string]struct {
		request request.End
		damage  func(*rig)
		code    fault.Code
		says    string
		reopens bool // Chrome had been closed
	}{
		"listing":               {filesystem, step(errBroken, "environment"), fault.SaveFailed, "continues", false},
		"capture":               {filesystem, step(broken, "capture"), fault.BrowserFailed, "continues", false},
		"capture for memory":    {memory, step(broken, "capture"), fault.BrowserFailed, "continues", false},
		"freeze":                {memory, step(broken, "freeze"), fault.BrowserFailed, "continues", false},
		"room":                  {filesystem, func(r *rig) { r.store.FailAt(1, faultstore.Refuse, full) }, fault.StoreFull, "continues", false},
		"health":                {filesystem, func(r *rig) { r.store.FailAt(2, faultstore.Refuse, full) }, fault.StoreFull, "continues", false},
		"files":                 {filesystem, lostProfile, fault.SaveFailed, "reopened", true},
		"store":                 {filesystem, func(r *rig) { r.store.FailAt(3, faultstore.Refuse, full) }, fault.StoreFull, "reopened", true},
		"store for memory":      {memory, func(r *rig) { r.store.FailAt(3, faultstore.Refuse, full) }, fault.StoreFull, "continues", false},
		"commit":                {filesystem, func(r *rig) { r.catalogue.fails(errBroken, "Commit") }, fault.SaveFailed, "reopened", true},
		"catalogue away":        {filesystem, func(r *rig) { r.catalogue.fails(away, "Commit", "Note") }, fault.CatalogueUnavailable, "reopened", true},
		"commit for memory":     {memory, func(r *rig) { r.catalogue.fails(full, "Commit") }, fault.StoreFull, "continues", false},
		"end without a save":    {none, func(r *rig) { r.catalogue.fails(full, "EndSession") }, fault.StoreFull, "", false},
		"crash while read":      {filesystem, func(r *rig) { r.browsers.on("capture", crash) }, fault.BrowserFailed, "the save failed: Chrome died; nothing was stored, and Chrome was reopened", true},
		"crash while frozen":    {memory, func(r *rig) { r.browsers.on("freeze", crash) }, fault.BrowserFailed, "the save failed: Chrome died; nothing was stored, and Chrome was reopened", true},
		"does not thaw":         {memory, func(r *rig) { r.catalogue.fails(full, "Commit"); r.browsers.fails(broken, "thaw") }, fault.StoreFull, "reopened", true},
		"commit with a default": {asDefault, func(r *rig) { r.catalogue.fails(errBroken, "Commit") }, fault.SaveFailed, "reopened", true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			_, old := r.saved(alice, asDefault)
			info := r.create(alice, fromAlice)
			first := r.browsers.last()
			test.damage(r)
			a, err := r.End(t.Context(), alice, info.ID, test.request)
			wantCode(t, err, test.code)
			if a.Success || a.Deleted || a.Snapshot != nil {
				t.Errorf("the answer is %+v", a)
			}
			if !strings.Contains(fault.MessageOf(err), test.says) {
				t.Errorf("the message is %q, want %q", fault.MessageOf(err), test.says)
			}
			r.browsers.works()
			r.store.FailAt(0, faultstore.Refuse, nil)
			r.catalogue.works()

			now, err := r.Get(t.Context(), alice, info.ID)
			if err != nil {
				t.Fatal(err)
			}
			if now.BrowserRestarted != test.reopens || now.Tickets[access.PurposeCDP] != info.Tickets[access.PurposeCDP] || r.status(info.ID) != profiles.StatusReady {
				t.Errorf("restarted %t, status %s, same ticket %t", now.BrowserRestarted, now.Status, now.Tickets[access.PurposeCDP] == info.Tickets[access.PurposeCDP])
			}
			last := r.browsers.last()
			if (last != first) != test.reopens || last.dead() || last.Frozen() || last.dir.Path != first.dir.Path {
				t.Errorf("another Chrome %t, dead %t, frozen %t, in %s", last != first, last.dead(), last.Frozen(), last.dir.Path)
			}
			if test.reopens && !last.options.RestoreTabs {
				t.Error("the tabs were not reopened")
			}
			d, err := r.library.Default(t.Context(), alice, "alice")
			if err != nil || d.SnapshotID != old || d.Version != 1 {
				t.Errorf("default %+v, %v", d, err)
			}
			r.wantSnapshots(old)
			if _, err := r.Navigate(t.Context(), alice, info.ID, "https://a.example/"); err != nil {
				t.Errorf("the session does not continue: %v", err)
			}
			ended := r.end(alice, info.ID, asDefault)
			if !ended.Default.Moved || ended.Default.Version != 2 {
				t.Errorf("default %+v", ended.Default)
			}
			r.wantSnapshots(old, ended.Snapshot.ID)
			if r.dirs() != 0 {
				t.Error("the run directory is left")
			}
		})
	}
}

// What a commit without an answer may have recorded stays in the store.
func TestCommitUnknown(t *testing.T) {
	r := newRig(t, nil)
	info := r.create(alice, nil)
	r.catalogue.fails(fault.Wrap(profiles.ErrOutcomeUnknown, fault.CatalogueUnavailable, "fake", ""), "Commit")
	_, err := r.End(t.Context(), alice, info.ID, filesystem)
	wantCode(t, err, fault.CatalogueUnavailable)
	if all, err := r.store.List(t.Context(), snapshot.ArchiveFolder(), 10, ""); err != nil || len(all) != 1 {
		t.Errorf("archives %v, %v", all, err)
	}
	r.catalogue.works()
	if ended := r.end(alice, info.ID, asDefault); ended.Snapshot == nil || !ended.Default.Moved {
		t.Errorf("the session could not be saved: %+v", ended)
	}
}

// A reopened Chrome's losses are reported. The session's report becomes that of the
// reopening, whatever it was before, and it is verified.
func TestReopenedIsReported(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	_, err := r.RestoreReport(t.Context(), alice, id)
	wantCode(t, err, fault.NotFound)
	again := func(doc state.Datadir) {
		t.Helper()
		proceed := make(chan struct{})
		r.browsers.on("verify", func(c *fakeChrome) error {
			<-proceed
			c.found.Differences = []state.Difference{{Component: "indexed_db", By: state.ByRestore, Missing: 1}}
			return nil
		})
		r.catalogue.fails(errBroken, "Commit")
		_, err := r.End(t.Context(), alice, id, filesystem)
		wantCode(t, err, fault.SaveFailed)
		r.catalogue.works()
		first, err := r.RestoreReport(t.Context(), alice, id)
		if err != nil || first.Verification != restore.VerificationPending || first.Source != (restore.Source{Type: restore.SourceSession, ID: id}) || first.SnapshotID != "" ||
			first.Datadir != doc || len(first.Components) != 1 || !strings.Contains(first.Warnings[0], "reopened") {
			t.Errorf("%+v, %v", first, err)
		}
		close(proceed)
		await(t, "verification", func() bool {
			report, err := r.RestoreReport(t.Context(), alice, id)
			return err == nil && report.Verification == restore.VerificationMismatch
		})
		await(t, "its record", func() bool {
			rec, err := r.catalogue.Session(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(rec.Restored), restore.VerificationMismatch)
		})
	}
	again(state.DatadirClean)
	r.browsers.last().closing = state.DatadirCrash
	again(state.DatadirCrash)
}

func crash(c *fakeChrome) error {
	c.die()
	return fault.New(fault.BrowserFailed, "fake", "Chrome is gone")
}

// State that was read before Chrome died is applied again; the dead profile does not
// replace it.
func TestReadStateIsAppliedAgain(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	name := r.browsers.last().dir.Name()
	r.browsers.on("freeze", crash)
	_, err := r.End(t.Context(), alice, id, memory)
	wantCode(t, err, fault.BrowserFailed)
	doc := r.browsers.last().restored
	if doc.Datadir != state.DatadirCrash || !doc.Complete || len(doc.Cookies) != 1 || doc.Cookies[0].Value != "of "+name {
		t.Errorf("reopened with %+v", doc)
	}
}

// The store fails at every fifth of its calls in turn, in the long form at each, in each
// mode. Either the end succeeds and the snapshot is complete, or it returns an error and
// nothing has changed. The three modes of failure begin at different calls.
func TestStoreFailsAnywhere(t *testing.T) {
	every := storetest.Every(5, 1)
	for _, asked := range []request.End{asDefault, {Mode: save.Memory, SaveAsDefault: true, Conflict: save.Keep}} {
		for mode, as := range map[faultstore.Mode]string{faultstore.Refuse: "refused", faultstore.Lose: "lost", faultstore.Dead: "dead"} {
			t.Run(string(asked.Mode)+" "+as, func(t *testing.T) {
				r := newRig(t, nil)
				_, current := r.saved(alice, asDefault)
				for n, failed := 1+int(mode)%every, true; failed; n += every {
					id := r.create(alice, func(c *request.Create) { fromAlice(c); c.AllowMemory = false }).ID
					r.store.FailAt(n, mode, fault.New(fault.StoreFailed, "fake", "call %d", n))
					a, err := r.End(t.Context(), alice, id, asked)
					failed = r.store.Calls() >= n
					r.store.FailAt(0, mode, nil)
					where := fmt.Sprintf("call %d", n)
					if err != nil {
						if code := fault.CodeOf(err); code != fault.StoreFailed && code != fault.SaveFailed {
							t.Errorf("%s: %v", where, err)
						}
						if d, err := r.library.Default(t.Context(), alice, "alice"); err != nil || d.SnapshotID != current {
							t.Errorf("%s: default %+v, %v", where, d, err)
						}
						if r.status(id) != profiles.StatusReady {
							t.Errorf("%s: status %s", where, r.status(id))
						}
						if mode != faultstore.Dead { // a dead store cannot be cleaned up
							r.wantSnapshots(current)
						}
						a = r.end(alice, id, asked)
					}
					if a.Default == nil || !a.Default.Moved {
						t.Fatalf("%s: %+v", where, a)
					}
					old := current
					current = a.Snapshot.ID
					if mode == faultstore.Dead {
						// Whatever else is left, the default can be restored.
						r.end(alice, r.create(alice, func(c *request.Create) { fromAlice(c); c.AllowMemory = false }).ID, none)
						continue
					}
					r.wantSnapshots(old, current)
					if err := r.library.DeleteSnapshot(t.Context(), alice, old); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// If Chrome cannot be reopened either, the user data directory is kept and the session is
// in error. A resume tries again, and an end saves what is left.
func TestReopenFails(t *testing.T) {
	broken := fault.New(fault.BrowserFailed, "fake", "no Chrome")
	inError := func(t *testing.T) (r *rig, id, old string) {
		r = newRig(t, nil)
		_, old = r.saved(alice, asDefault)
		id = r.create(alice, fromAlice).ID
		r.catalogue.fails(fault.New(fault.StoreFull, "fake", "no space"), "Commit")
		r.browsers.fails(broken, "restored")
		_, err := r.End(t.Context(), alice, id, asDefault)
		wantCode(t, err, fault.StoreFull)
		if !strings.Contains(fault.MessageOf(err), "resume") {
			t.Errorf("the message is %q", fault.MessageOf(err))
		}
		if r.status(id) != profiles.StatusError || r.dirs() != 1 {
			t.Errorf("status %s, %d directories", r.status(id), r.dirs())
		}
		r.catalogue.works()
		r.wantSnapshots(old)
		return r, id, old
	}
	t.Run("resume", func(t *testing.T) {
		r, id, old := inError(t)
		_, err := r.Navigate(t.Context(), alice, id, "https://a.example/")
		wantCode(t, err, fault.SessionNotRunning)
		_, err = r.Pause(t.Context(), alice, id)
		wantCode(t, err, fault.SessionNotRunning)
		_, err = r.Resume(t.Context(), alice, id, "")
		wantCode(t, err, fault.BrowserFailed)
		if r.status(id) != profiles.StatusError || r.dirs() != 1 {
			t.Errorf("status %s, %d directories", r.status(id), r.dirs())
		}
		r.browsers.works()
		a, err := r.Resume(t.Context(), alice, id, "")
		if err != nil || a.Status != "resumed" {
			t.Fatalf("%+v, %v", a, err)
		}
		info, err := r.Get(t.Context(), alice, id)
		if err != nil || !info.BrowserRestarted || info.Status != profiles.StatusReady {
			t.Errorf("%+v, %v", info, err)
		}
		if r.browsers.last().restored.Datadir != state.DatadirCrash {
			// The Chrome that failed to start may have had the profile open.
			t.Errorf("the profile counts as %s after a failed start", r.browsers.last().restored.Datadir)
		}
		r.wantSnapshots(old, r.end(alice, id, asDefault).Snapshot.ID)
	})
	t.Run("end with a save", func(t *testing.T) {
		r, id, old := inError(t)
		a := r.end(alice, id, asDefault)
		if !a.Default.Moved || r.status(id) != profiles.StatusCompleted || r.dirs() != 0 {
			t.Errorf("%+v, status %s, %d directories", a, r.status(id), r.dirs())
		}
		r.wantSnapshots(old, a.Snapshot.ID)
	})
	t.Run("end without", func(t *testing.T) {
		r, id, old := inError(t)
		r.end(alice, id, none)
		if r.dirs() != 0 {
			t.Error("the directory is left")
		}
		r.wantSnapshots(old)
	})
	t.Run("the daemon stops", func(t *testing.T) {
		r, id, old := inError(t)
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		rescue, err := r.catalogue.NewestSnapshot(t.Context(), id)
		if err != nil || !rescue.Rescue {
			t.Fatalf("%+v, %v", rescue, err)
		}
		r.wantSnapshots(old, rescue.ID)
	})
	t.Run("the daemon is killed", func(t *testing.T) {
		r, id, old := inError(t)
		r.kill()
		next := r.daemon(nil)
		if err := recovered(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		rescue, err := r.catalogue.NewestSnapshot(t.Context(), id)
		if err != nil {
			t.Fatalf("what was kept is lost: %v", err)
		}
		if r.dirs() != 0 {
			t.Error("the directory is left")
		}
		r.wantSnapshots(old, rescue.ID)
	})
}

// If Chrome cannot even be killed, the error says so and nothing is removed.
func TestCloseFails(t *testing.T) {
	r := newRig(t, nil)
	_, old := r.saved(alice, asDefault)
	id := r.create(alice, fromAlice).ID
	r.browsers.fails(fault.New(fault.BrowserFailed, "fake", "it does not die"), "close", "kill")
	_, err := r.End(t.Context(), alice, id, filesystem)
	wantCode(t, err, fault.BrowserFailed)
	if r.status(id) != profiles.StatusError || r.dirs() != 1 {
		t.Errorf("status %s, %d directories", r.status(id), r.dirs())
	}
	r.browsers.works()
	r.browsers.last().die()
	r.wantSnapshots(old)
	if _, err := r.Resume(t.Context(), alice, id, ""); err != nil {
		t.Fatal(err)
	}
	r.wantSnapshots(old, r.end(alice, id, filesystem).Snapshot.ID)
}
