package session

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

func TestEndNone(t *testing.T) {
	r := newRig(t, nil)
	unused := r.create(alice, nil).ID
	if a := r.end(alice, unused, none); a.UnsavedChanges || a.Default != nil {
		t.Errorf("unused session: %+v", a)
	}
	used := r.create(alice, nil).ID
	if _, err := r.Navigate(t.Context(), alice, used, "https://a.example/"); err != nil {
		t.Fatal(err)
	}
	if a := r.end(alice, used, none); !a.UnsavedChanges {
		t.Errorf("used session: %+v", a)
	}
	if r.status(used) != profiles.StatusCompleted {
		t.Errorf("status %s", r.status(used))
	}
	if r.dirs() != 0 {
		t.Error("run directories are left")
	}
	r.wantSnapshots()
}

// A filesystem save notifies clients and closes Chrome without killing it. Its profile
// and the state document are what a restore restores.
func TestEndFilesystem(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	chrome := r.browsers.last()
	killed := false
	r.browsers.on("kill", func(c *fakeChrome) error { killed = killed || !c.dead(); return nil })
	a := r.end(alice, id, asDefault)
	want := library.SnapshotInfo{SessionID: id, UserID: "alice", Mode: "filesystem", Datadir: "clean",
		Chrome: "156.0.8078.79", Engine: "chrome", Warnings: []string{}, Logins: []state.Login{},
		Components: []state.Component{{Name: "cookies", Origin: "a.example", Saved: 1}, {Name: "tabs", Saved: 1}}}
	if diff := cmp.Diff(want, *a.Snapshot, cmpopts.IgnoreFields(library.SnapshotInfo{}, "ID", "CreatedAt", "SizeBytes")); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&save.DefaultOutcome{Moved: true, Version: 1}, a.Default); diff != "" {
		t.Errorf("default (-want +got):\n%s", diff)
	}
	if killed || chrome.code != mux.CloseSessionEnded {
		t.Errorf("killed %t, clients were closed with %d", killed, chrome.code)
	}
	if r.dirs() != 0 || r.Counts() != (Counts{}) {
		t.Errorf("%d directories, %+v", r.dirs(), r.Counts())
	}
	rec, err := r.catalogue.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var recorded save.EndAnswer
	if err := json.Unmarshal(rec.Outcome, &recorded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, recorded); diff != "" {
		t.Errorf("recorded outcome (-answer +recorded):\n%s", diff)
	}
	r.wantSnapshots(a.Snapshot.ID)

	back := r.create(alice, fromAlice)
	restored := r.browsers.last()
	if diff := cmp.Diff("of "+chrome.dir.Name(), restored.restored.Cookies[0].Value); diff != "" {
		t.Errorf("cookie (-want +got):\n%s", diff)
	}
	if restored.restored.Datadir != state.DatadirClean || !restored.options.RestoreTabs {
		t.Errorf("%s, %+v", restored.restored.Datadir, restored.options)
	}
	if back.Restored.Path != restore.PathCold || back.Restored.Mode != "filesystem" || back.Restored.FallbackReason != "" {
		t.Errorf("%+v", back.Restored)
	}
	await(t, "verification", func() bool {
		report, err := r.RestoreReport(t.Context(), alice, back.ID)
		return err == nil && report.Verification == restore.VerificationOK
	})
}

// The archived profile has exactly the bytes that Chrome left.
func TestEndKeepsTheFiles(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	dir := r.browsers.last().dir
	// Written at the last moment, as Chrome does when it closes.
	r.browsers.on("close", func(c *fakeChrome) error {
		return os.WriteFile(filepath.Join(c.dir.Profile(), profile.Default, "Last"), []byte("moment"), 0o600)
	})
	snap := r.end(alice, id, filesystem).Snapshot.ID
	saved, err := r.deps.Vault.Open(t.Context(), library.LocationOf("alice", id), snap)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if _, err := r.deps.Vault.Unpack(t.Context(), saved, out, snapshot.UnpackOptions{Limits: r.cfg.Unpack}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Default/Files": "jar of " + dir.Name(), "Default/Last": "moment"} {
		got, err := os.ReadFile(filepath.Join(out, name))
		if err != nil || string(got) != want {
			t.Errorf("%s is %q (%v), want %q", name, got, err, want)
		}
	}
}

// Concurrent ends with the same parameters share one answer; others are refused. Later
// ends return what was saved.
func TestConcurrentEnds(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	under, proceed := make(chan struct{}), make(chan struct{})
	r.browsers.on("capture", func(*fakeChrome) error { close(under); <-proceed; return nil })
	answers := make(chan save.EndAnswer, 3)
	var group sync.WaitGroup
	end := func() {
		a, err := r.End(t.Context(), alice, id, filesystem)
		if err != nil {
			t.Error(err)
		}
		answers <- a
	}
	group.Go(end)
	<-under
	for _, other := range []request.End{none, memory, asDefault, {Mode: save.Filesystem, Conflict: save.Overwrite}} {
		_, err := r.End(t.Context(), alice, id, other)
		wantCode(t, err, fault.SessionEnding)
	}
	_, err := r.Navigate(t.Context(), alice, id, "https://a.example/")
	wantCode(t, err, fault.SessionEnding)
	l := r.sessions.Find(id)
	group.Go(end)
	group.Go(end)
	await(t, "both share the end", func() bool {
		n := 0
		if err := l.ask(t.Context(), func() error { n = len(l.ending.waiters); return nil }); err != nil {
			t.Fatal(err)
		}
		return n == 3
	})
	close(proceed)
	group.Wait()
	first := <-answers
	for range 2 {
		if diff := cmp.Diff(first, <-answers); diff != "" {
			t.Errorf("answers differ:\n%s", diff)
		}
	}
	if !first.Deleted || first.Snapshot == nil {
		t.Fatalf("%+v", first)
	}
	for _, later := range []request.End{filesystem, none, memory} {
		a, err := r.End(t.Context(), alice, id, later)
		if err != nil || a.Deleted || !a.Success || a.Snapshot == nil || a.Snapshot.ID != first.Snapshot.ID {
			t.Errorf("later end: %+v, %v", a, err)
		}
	}
	r.wantSnapshots(first.Snapshot.ID)
}

// Without a save, an end of a session that does not exist succeeds. A save of it is an error,
// because nothing was saved.
func TestEndWithoutSession(t *testing.T) {
	r := newRig(t, nil)
	foreign := r.create(bob, nil).ID
	for _, id := range []string{"no-such", "../../etc", "", foreign} {
		a, err := r.End(t.Context(), alice, id, none)
		if err != nil || a.Deleted || !a.Success || a.Snapshot != nil {
			t.Errorf("%q: %+v, %v", id, a, err)
		}
		for _, save := range []request.End{filesystem, memory, asDefault} {
			_, err := r.End(t.Context(), alice, id, save)
			wantCode(t, err, fault.SessionNotFound)
		}
	}
	_, err := r.End(t.Context(), alice, "no-such", request.End{Mode: save.None, SaveAsDefault: true})
	wantCode(t, err, fault.InvalidField)
}

// A session that ended without a save cannot be saved afterwards, and the answer says so.
func TestEndAgainWithASave(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.end(alice, id, none)
	for _, later := range []request.End{filesystem, memory} {
		a, err := r.End(t.Context(), alice, id, later)
		wantCode(t, err, fault.NoSnapshot)
		if a.Success || !strings.Contains(fault.MessageOf(err), "session "+id+" has already ended without a save") {
			t.Errorf("%s: %+v, %v", later.Mode, a, err)
		}
	}
	if a, err := r.End(t.Context(), alice, id, none); err != nil || !a.Success || a.Deleted {
		t.Errorf("the same end again: %+v, %v", a, err)
	}
}

// A save continues after its client has disconnected.
func TestSaveOutlivesItsRequest(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	under, proceed := make(chan struct{}), make(chan struct{})
	r.browsers.on("capture", func(*fakeChrome) error { close(under); <-proceed; return nil })
	ctx, hangUp := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { _, err := r.End(ctx, alice, id, asDefault); result <- err }()
	<-under
	hangUp()
	wantCode(t, <-result, fault.Timeout)
	close(proceed)
	await(t, "the session ended", func() bool { return r.sessions.Find(id) == nil })
	a, err := r.End(t.Context(), alice, id, asDefault)
	if err != nil || a.Snapshot == nil {
		t.Fatalf("%+v, %v", a, err)
	}
	if d, err := r.library.Default(t.Context(), alice, "alice"); err != nil || d.SnapshotID != a.Snapshot.ID {
		t.Errorf("default %+v, %v", d, err)
	}
	r.wantSnapshots(a.Snapshot.ID)
}

func TestEndAll(t *testing.T) {
	r := newRig(t, nil)
	mine := []string{r.create(alice, nil).ID, r.create(alice, nil).ID}
	his := r.create(bob, nil).ID
	a, err := r.EndAll(t.Context(), alice, request.EndAll{End: filesystem})
	if err != nil || !a.Deleted || a.Message != "2 sessions ended" {
		t.Errorf("%+v, %v", a, err)
	}
	for _, id := range mine {
		if r.status(id) != profiles.StatusCompleted {
			t.Errorf("%s is %s", id, r.status(id))
		}
	}
	if r.status(his) != profiles.StatusReady {
		t.Errorf("bob's is %s", r.status(his))
	}
	if a, err := r.EndAll(t.Context(), admin, request.EndAll{End: none, All: true}); err != nil || a.Message != "1 session ended" {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := r.EndAll(t.Context(), admin, request.EndAll{End: none, All: true}); err != nil || a.Deleted {
		t.Errorf("again: %+v, %v", a, err)
	}
}

// Two sessions start from one default. The first moves it. The second's snapshot is kept,
// and its answer names the winner, unless it overwrites.
func TestDefaultRace(t *testing.T) {
	r := newRig(t, nil)
	_, one := r.saved(alice, asDefault)
	a, b, c := r.create(alice, fromAlice).ID, r.create(alice, fromAlice).ID, r.create(alice, fromAlice).ID
	won := r.end(alice, a, asDefault)
	if diff := cmp.Diff(&save.DefaultOutcome{Moved: true, Version: 2}, won.Default); diff != "" {
		t.Errorf("first (-want +got):\n%s", diff)
	}
	lost := r.end(alice, b, asDefault)
	if lost.Default.Moved || lost.Default.Version != 2 || !strings.Contains(lost.Default.Reason, a) {
		t.Errorf("second: %+v", lost.Default)
	}
	d, err := r.library.Default(t.Context(), alice, "alice")
	if err != nil || d.SnapshotID != won.Snapshot.ID {
		t.Errorf("default %+v, %v", d, err)
	}
	over := r.end(alice, c, request.End{Mode: save.Filesystem, SaveAsDefault: true, Conflict: save.Overwrite})
	if diff := cmp.Diff(&save.DefaultOutcome{Moved: true, Version: 3}, over.Default); diff != "" {
		t.Errorf("overwriting (-want +got):\n%s", diff)
	}
	r.wantSnapshots(one, won.Snapshot.ID, lost.Snapshot.ID, over.Snapshot.ID)
	// A default's snapshot cannot be deleted. An older one can, with its archive.
	wantCode(t, r.library.DeleteSnapshot(t.Context(), alice, over.Snapshot.ID), fault.SnapshotInUse)
	if err := r.library.DeleteSnapshot(t.Context(), alice, one); err != nil {
		t.Error(err)
	}
	r.wantSnapshots(won.Snapshot.ID, lost.Snapshot.ID, over.Snapshot.ID)
	// The history shows it, and so does the answer to a move back.
	history, _, err := r.library.DefaultHistory(t.Context(), alice, "alice", 10, "")
	if err != nil || len(history) != 3 || !history[0].Available || !history[1].Available || history[2].Available || history[2].SnapshotID != one {
		t.Errorf("history %+v, %v", history, err)
	}
	_, err = r.library.SetDefault(t.Context(), alice, "alice", one, nil)
	wantCode(t, err, fault.SnapshotNotFound)
	stale := int64(2)
	_, err = r.library.SetDefault(t.Context(), alice, "alice", won.Snapshot.ID, &stale)
	wantCode(t, err, fault.VersionConflict)
	if message := fault.MessageOf(err); !strings.Contains(message, c) || !strings.Contains(message, over.Snapshot.ID) {
		t.Errorf("the error does not name the winner: %s", message)
	}
	current := int64(3)
	if back, err := r.library.SetDefault(t.Context(), alice, "alice", won.Snapshot.ID, &current); err != nil || back.Version != 4 {
		t.Errorf("back to the second: %+v, %v", back, err)
	}
	// A removed default stays removed for a session that began before.
	late := r.create(alice, fromAlice).ID
	if err := r.library.DeleteDefault(t.Context(), alice, "alice"); err != nil {
		t.Fatal(err)
	}
	if a := r.end(alice, late, asDefault); a.Default.Moved {
		t.Errorf("%+v", a.Default)
	}
}

// Lists are paged with a cursor; so are a session's snapshots.
func TestLists(t *testing.T) {
	r := newRig(t, nil)
	var ids []string
	for range 3 {
		ids = append([]string{r.create(alice, func(c *request.Create) { c.Labels = map[string]string{"a": "b"} }).ID}, ids...)
		r.clock.add(time.Second)
	}
	var got []string
	for after := ""; ; {
		page, next, err := r.List(t.Context(), alice, request.List{Limit: 2, StartAfter: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range page {
			got = append(got, info.ID)
			if info.Tickets[access.PurposeCDP] == "" || info.Labels["a"] != "b" {
				t.Errorf("%+v", info)
			}
		}
		if after = next; after == "" {
			break
		}
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	snap := r.end(alice, ids[0], filesystem).Snapshot.ID
	page, next, err := r.library.Snapshots(t.Context(), alice, ids[0], 10, "")
	if err != nil || next != "" || len(page) != 1 || page[0].ID != snap {
		t.Errorf("%+v, %q, %v", page, next, err)
	}
}
