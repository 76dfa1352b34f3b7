package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/snapshot/faultstore"
	"github.com/stasisd/stasis/state"
)

// Sessions that a dead daemon left are reported correctly, whatever their state was.
func TestRecover(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	left := func(id string, change func(*profiles.Session)) profiles.Session {
		t.Helper()
		rec := profiles.Session{ID: id, UserID: "alice", KeyID: "key-a", Engine: browser.EngineChrome, Status: profiles.StatusRunning,
			CreatedAt: r.clock.now(), ExpiresAt: r.clock.now(), RunDir: id}
		if change != nil {
			change(&rec)
		}
		if err := r.catalogue.CreateSession(ctx, rec); err != nil {
			t.Fatal(err)
		}
		return rec
	}
	dir := func(name string, files map[string]string) {
		t.Helper()
		d, err := r.browsers.launcher.NewDir(name)
		if err != nil {
			t.Fatal(err)
		}
		for file, body := range files {
			at := filepath.Join(d.Profile(), file)
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	folder := map[string]string{profile.Default + "/Cookies": "jar"}
	left("whole", nil)
	dir("whole", folder)
	left("gone", nil)
	left("empty", nil)
	dir("empty", nil)
	left("discard", func(rec *profiles.Session) { rec.Discard = true })
	dir("discard", folder)
	left("paused", func(rec *profiles.Session) { rec.Status = profiles.StatusPaused })
	dir("paused", folder)
	dir("nobodys", folder)

	r.catalogue.fails(fault.New(fault.StoreFull, "fake", "no space"), "Commit")
	if err := r.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	wantCode(t, r.rescues.Await(ctx, "whole"), fault.StoreFull)
	if _, err := os.Stat(filepath.Join(r.browsers.launcher.Root(), "whole", "profile", profile.Default)); err != nil {
		t.Fatalf("a start without disk space has removed the data: %v", err)
	}
	r.catalogue.works()
	await(t, "the rescues of the first start", func() bool { return r.Counts().Rescuing == 0 })
	for range 2 { // a later start finds nothing to do
		if err := recovered(ctx, r.Service); err != nil {
			t.Fatal(err)
		}
	}
	var kept []string
	for id, want := range map[string]struct {
		reason profiles.ReasonCode
		saved  bool
	}{
		"whole":   {profiles.ReasonKilled, true},
		"paused":  {profiles.ReasonKilled, true},
		"gone":    {profiles.ReasonNotRescued, false},
		"empty":   {profiles.ReasonNotRescued, false},
		"discard": {profiles.ReasonKilled, false},
	} {
		rec := r.ended(id)
		if rec.Status != profiles.StatusTerminated || rec.Reason.Code != want.reason {
			t.Errorf("%s: %s, %q", id, rec.Status, rec.Reason)
		}
		row, err := r.catalogue.NewestSnapshot(ctx, id)
		if (err == nil) != want.saved {
			t.Errorf("%s: %v", id, err)
		}
		if err == nil {
			kept = append(kept, row.ID)
		}
	}
	r.wantSnapshots(kept...)
	if r.dirs() != 0 {
		t.Errorf("%d directories", r.dirs())
	}
}

// A snapshot that a dead daemon had stored but not committed is removed, because no
// caller knows it. If the session's directory is gone, the catalogue is an old one, and a
// snapshot that it does not know stays.
func TestRecoverRemovesUncommitted(t *testing.T) {
	r := newRig(t, nil)
	saved := map[string]string{}
	for _, id := range []string{"s-1", "put-back"} {
		rec := profiles.Session{ID: id, UserID: "alice", KeyID: "key-a", Engine: browser.EngineChrome, Status: profiles.StatusRunning,
			CreatedAt: r.clock.now(), ExpiresAt: r.clock.now(), RunDir: id}
		if err := r.catalogue.CreateSession(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		snap, err := r.deps.Vault.Save(t.Context(), snapshot.Draft{ID: profiles.NewID(), Location: library.LocationOf("alice", id), Mode: snapshot.Filesystem, CreatedAt: r.clock.now(),
			Entries: []snapshot.Entry{{Name: state.FileName, Data: []byte("{}")}}})
		if err != nil {
			t.Fatal(err)
		}
		saved[id] = snap.ID
	}
	if _, err := r.browsers.launcher.NewDir("s-1"); err != nil {
		t.Fatal(err)
	}
	if err := recovered(t.Context(), r.Service); err != nil {
		t.Fatal(err)
	}
	loc := library.LocationOf("alice", "s-1")
	if _, err := r.deps.Vault.Open(t.Context(), loc, saved["s-1"]); !fault.Is(err, fault.SnapshotNotFound) {
		t.Errorf("the snapshot: %v", err)
	}
	if latest, err := r.deps.Vault.Latest(t.Context(), loc); !fault.Is(err, fault.SnapshotNotFound) {
		t.Errorf("latest: %q, %v", latest.ID, err)
	}
	if _, err := r.deps.Vault.Open(t.Context(), library.LocationOf("alice", "put-back"), saved["put-back"]); err != nil {
		t.Errorf("the snapshot that an older catalogue does not know: %v", err)
	}
}

// A stop that cannot save returns an error. The next start saves.
func TestCloseUnsaved(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.store.FailAt(1, faultstore.Dead, fault.New(fault.StoreFull, "fake", "no space"))
	err := r.Close(t.Context())
	if !fault.Is(err, fault.StoreFull) || !strings.Contains(fault.MessageOf(err), id) {
		t.Errorf("Close: %v", err)
	}
	r.store.FailAt(0, faultstore.Refuse, nil)
	r.Service = r.daemon(nil)
	if err := recovered(t.Context(), r.Service); err != nil {
		t.Fatal(err)
	}
	if _, err := r.catalogue.NewestSnapshot(t.Context(), id); err != nil {
		t.Errorf("after the next start: %v", err)
	}
}
