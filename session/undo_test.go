package session

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/undo"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/memstore"
)

// newUndoRig is newRig with an undo window of an hour.
func newUndoRig(t *testing.T) *rig {
	return newRig(t, func(c *Config) { c.Undo = undo.Limits{Window: time.Hour, Count: 2, Bytes: 1 << 30} })
}

// discarded ends a session without a save and checks that it is kept.
func (r *rig) discarded(id string) {
	r.t.Helper()
	if a := r.end(alice, id, none); a.UndoUntil == nil || a.Snapshot != nil || !strings.Contains(a.Message, "until undo_until") {
		r.t.Fatalf("%+v", a)
	}
}

// A session that was ended without a save is saved by a second end, as the first one would
// have saved it, also as default. Its folder is then removed.
func TestUndoByASecondEnd(t *testing.T) {
	r := newUndoRig(t)
	r.saved(alice, asDefault)
	id := r.create(alice, fromAlice).ID
	r.rewrite(r.browsers.last(), "changed")
	r.discarded(id)
	if r.dirs() != 1 || r.status(id) != profiles.StatusCompleted || r.Counts().Live != 0 {
		t.Errorf("%d directories, the session is %s", r.dirs(), r.status(id))
	}
	a, err := r.End(t.Context(), alice, id, asDefault)
	if err != nil || a.Deleted || a.Snapshot == nil || a.Snapshot.Rescue || !a.Default.Moved || a.Default.Version != 2 || r.dirs() != 0 {
		t.Fatalf("%+v, %v, %d directories", a, err, r.dirs())
	}
	info, err := r.Get(t.Context(), alice, id)
	if err != nil || info.Status != profiles.StatusCompleted || !strings.Contains(string(info.Outcome), a.Snapshot.ID) {
		t.Errorf("%s %s, %v", info.Status, info.Outcome, err)
	}
	again, err := r.End(t.Context(), alice, id, filesystem)
	if err != nil || again.Snapshot == nil || again.Snapshot.ID != a.Snapshot.ID {
		t.Errorf("a third end: %+v, %v", again, err)
	}
	if restored := r.create(alice, func(c *request.Create) { c.FromSession = id }); restored.Restored.SnapshotID != a.Snapshot.ID {
		t.Errorf("%+v", restored.Restored)
	}
}

// While a discarded session can still be saved, every answer about it says until when.
func TestUndoIsShown(t *testing.T) {
	r := newUndoRig(t)
	id := r.create(alice, nil).ID
	if _, err := r.Navigate(t.Context(), alice, id, "https://a.example/"); err != nil {
		t.Fatal(err)
	}
	first := r.end(alice, id, none)
	if first.UndoUntil == nil || !first.UnsavedChanges {
		t.Fatalf("%+v", first)
	}
	again, err := r.End(t.Context(), alice, id, none)
	first.Deleted = false
	if diff := cmp.Diff(first, again); err != nil || diff != "" {
		t.Errorf("another end without a save: %v\n%s", err, diff)
	}
	if info, err := r.Get(t.Context(), alice, id); err != nil || info.UndoUntil == nil || !info.UndoUntil.Equal(*first.UndoUntil) {
		t.Errorf("GET: %v, %v", info.UndoUntil, err)
	}
	wantSays := func(err error, code fault.Code, says string) {
		t.Helper()
		wantCode(t, err, code)
		if err == nil || !strings.Contains(fault.MessageOf(err), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	fromIt := func(c *request.Create) { c.FromSession = id }
	_, err = r.Create(t.Context(), alice, newCreate(fromIt))
	wantSays(err, fault.NoSnapshot, "until "+first.UndoUntil.Format(time.RFC3339)+" a DELETE")
	_, err = r.End(t.Context(), alice, id, memory)
	wantSays(err, fault.InvalidField, "save_snapshot_mode: must be filesystem")

	r.clock.add(time.Hour)
	if info, err := r.Get(t.Context(), alice, id); err != nil || info.UndoUntil != nil {
		t.Errorf("GET after the window: %v, %v", info.UndoUntil, err)
	}
	if a, err := r.End(t.Context(), alice, id, none); err != nil || a.UndoUntil != nil || !a.UnsavedChanges {
		t.Errorf("another end after the window: %+v, %v", a, err)
	}
	_, err = r.Create(t.Context(), alice, newCreate(fromIt))
	wantSays(err, fault.NoSnapshot, "nothing of it can be restored")
	_, err = r.End(t.Context(), alice, id, memory)
	wantSays(err, fault.NoSnapshot, "no longer kept")
}

// A resume saves a discarded session first, and continues from there.
func TestUndoByAResume(t *testing.T) {
	r := newUndoRig(t)
	id := r.create(alice, nil).ID
	r.discarded(id)
	a, err := r.Resume(t.Context(), alice, id, "")
	if err != nil || !strings.Contains(a.Message, "saved now") {
		t.Fatalf("%+v, %v", a, err)
	}
	info, err := r.Get(t.Context(), alice, id)
	if err != nil {
		t.Fatal(err)
	}
	if snap, err := r.catalogue.NewestSnapshot(t.Context(), id); err != nil || info.Restored.SnapshotID != snap.ID {
		t.Errorf("%+v, %v", info.Restored, err)
	}
	if r.dirs() != 1 {
		t.Errorf("%d directories", r.dirs())
	}
}

// After a save that fails, the profile is still kept, and the next try saves it.
func TestUndoAfterAFailedSave(t *testing.T) {
	r := newUndoRig(t)
	id := r.create(alice, nil).ID
	r.discarded(id)
	r.catalogue.fails(errBroken, "Commit")
	_, err := r.End(t.Context(), alice, id, filesystem)
	wantCode(t, err, fault.SaveFailed)
	_, err = r.Resume(t.Context(), alice, id, "")
	wantCode(t, err, fault.SaveFailed)
	if err == nil || !strings.Contains(fault.MessageOf(err), "it is still kept, so try again") {
		t.Errorf("a resume that cannot save: %v", err)
	}
	r.catalogue.works()
	if a, err := r.End(t.Context(), alice, id, filesystem); err != nil || a.Snapshot == nil {
		t.Errorf("%+v, %v", a, err)
	}
}

// When the window is over, or there is none, a second end that asks for a save is an
// error that says so, also if the session has an older checkpoint. The oldest profiles
// give way to newer ones, and a stop of the daemon removes all.
func TestUndoIsOver(t *testing.T) {
	r := newUndoRig(t)
	tooLate := func(id, says string) {
		t.Helper()
		_, err := r.End(t.Context(), alice, id, filesystem)
		wantCode(t, err, fault.NoSnapshot)
		if err == nil || !strings.Contains(fault.MessageOf(err), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	id := r.create(alice, nil).ID
	checkpoint := r.checkpoint(id, plain).Snapshot.ID
	r.discarded(id)
	r.clock.add(time.Hour)
	tooLate(id, "no longer kept (--undo-window)")
	tooLate(id, checkpoint)
	if r.dirs() != 0 {
		t.Errorf("%d directories", r.dirs())
	}
	var ids []string
	for range 3 {
		ids = append(ids, r.create(alice, nil).ID)
		r.discarded(ids[len(ids)-1])
	}
	if r.dirs() != 2 {
		t.Errorf("%d directories", r.dirs())
	}
	tooLate(ids[0], "--undo-window")
	readOnly := r.create(alice, func(c *request.Create) { c.ReadOnly = true }).ID
	if a := r.end(alice, readOnly, none); a.UndoUntil != nil || r.dirs() != 2 {
		t.Errorf("a read_only session is kept: %+v", a)
	}
	if err := r.Close(t.Context()); err != nil || r.dirs() != 0 {
		t.Errorf("%v, %d directories after a stop", err, r.dirs())
	}
	r = newRig(t, nil)
	id = r.create(alice, nil).ID
	if a := r.end(alice, id, none); a.UndoUntil != nil || r.dirs() != 0 {
		t.Errorf("%+v", a)
	}
	tooLate(id, "ask for the save at the first end, with save_snapshot_mode")
}

// A profile that exceeds the bytes is not kept. When the store has no space for a save, what
// was discarded gives way.
func TestUndoNeedsSpace(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Undo = undo.Limits{Window: time.Hour, Count: 2, Bytes: 1} })
	if a := r.end(alice, r.create(alice, nil).ID, none); a.UndoUntil != nil || r.dirs() != 0 {
		t.Errorf("%+v, %d directories", a, r.dirs())
	}
	r = newUndoRig(t)
	r.discarded(r.create(alice, nil).ID)
	id := r.create(alice, nil).ID
	r.watched.Store = memstore.New(snapshot.DefaultReserve, time.Now)
	_, err := r.End(t.Context(), alice, id, filesystem)
	wantCode(t, err, fault.StoreFull)
	if r.dirs() != 1 {
		t.Errorf("%d directories, of the live session and of the discarded one", r.dirs())
	}
	if a := r.end(alice, id, none); a.UndoUntil != nil || r.dirs() != 0 {
		t.Errorf("a profile is kept that the store has no space for: %+v", a)
	}
}

// If Chrome cannot be read or closed, its profile is not kept, and the session still ends. A
// killed daemon's next start removes what was kept.
func TestUndoWithoutAProfile(t *testing.T) {
	r := newUndoRig(t)
	for _, broken := range []string{"capture", "close"} {
		id := r.create(alice, nil).ID
		r.browsers.fails(errBroken, broken)
		if a := r.end(alice, id, none); a.UndoUntil != nil || !a.Deleted || r.dirs() != 0 {
			t.Errorf("%s fails: %+v, %d directories", broken, a, r.dirs())
		}
		r.browsers.works()
	}
	r.discarded(r.create(alice, nil).ID)
	r.kill()
	r.Service = r.daemon(nil)
	if err := recovered(t.Context(), r.Service); err != nil || r.dirs() != 0 {
		t.Errorf("%v, %d directories after a kill", err, r.dirs())
	}
}
