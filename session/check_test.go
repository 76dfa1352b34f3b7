package session

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/importer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/quota"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/session/settings"
)

// setCheck gives alice a login check.
func (r *rig) setCheck(beforeDefault bool) {
	r.t.Helper()
	status, text, seconds := int64(200), "Hello", int64(5)
	_, err := r.ChangeSettings(r.t.Context(), alice, "alice", func(set settings.Settings) (settings.Settings, error) {
		set.LoginCheck = &settings.LoginCheck{URL: "https://a.example/account", Status: &status, Text: &text, TimeoutSeconds: &seconds, BeforeDefault: beforeDefault}
		return set, nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

// A change of a user's settings is stored as a whole or not at all.
func TestSettings(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	r.setCheck(true)
	refuse := func(settings.Settings) (settings.Settings, error) { return settings.Settings{}, errBroken }
	if _, err := r.ChangeSettings(ctx, alice, "alice", refuse); err != errBroken {
		t.Errorf("got %v", err)
	}
	set, err := r.Settings(ctx, admin, "alice")
	if err != nil || set.LoginCheck == nil || set.LoginCheck.URL != "https://a.example/account" || !set.LoginCheck.BeforeDefault {
		t.Errorf("%+v, %v", set, err)
	}
	if set, err := r.Settings(ctx, bob, "bob"); err != nil || set.LoginCheck != nil {
		t.Errorf("user without settings: %+v, %v", set, err)
	}
	_, err = r.Settings(ctx, bob, "alice")
	wantCode(t, err, fault.UserNotFound)
	_, err = r.ChangeSettings(ctx, bob, "alice", refuse)
	wantCode(t, err, fault.UserNotFound)
	_, err = r.CheckDefault(ctx, bob, "alice")
	wantCode(t, err, fault.UserNotFound)
	_, err = r.Settings(ctx, access.Caller{UserID: "alice"}, "alice")
	wantCode(t, err, fault.Forbidden)
}

// A requested check runs in its own Chrome on the default's files. The Chrome is gone
// afterwards, and the result is part of the default.
func TestCheckDefault(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxSessions = 1 })
	ctx := t.Context()
	_, err := r.CheckDefault(ctx, alice, "alice")
	wantCode(t, err, fault.DefaultNotFound)
	_, snap := r.saved(alice, memoryDefault)
	parked := r.browsers.last()
	_, err = r.CheckDefault(ctx, alice, "alice")
	wantCode(t, err, fault.NoLoginCheck)
	r.setCheck(false)

	got, err := r.CheckDefault(ctx, alice, "alice")
	if err != nil {
		t.Fatal(err)
	}
	chrome := r.browsers.last()
	want := browser.LoginCheck{URL: "https://a.example/account", Status: 200, Text: "Hello", Timeout: 5 * time.Second}
	if diff := cmp.Diff([]browser.LoginCheck{want}, chrome.asked); diff != "" {
		t.Errorf("check (-want +got):\n%s", diff)
	}
	if !got.LoggedIn || *got.URL != "https://a.example/account" || *got.Status != 200 || *got.SnapshotID != snap || *got.Version != 1 ||
		got.Error != nil || len(got.Conditions) != 1 || got.DurationMS <= 0 {
		t.Errorf("%+v", got)
	}
	if chrome == parked || !chrome.dead() || parked.dead() || chrome.options.RestoreTabs || r.dirs() != 1 {
		t.Errorf("the parked one %t, dead %t, %t, with tabs %t, %d directories", chrome == parked, chrome.dead(), parked.dead(), chrome.options.RestoreTabs, r.dirs())
	}
	r.wantSnapshots(snap)
	last, err := r.LastCheck(ctx, alice, "alice")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&got, last); diff != "" {
		t.Errorf("last_check (-want +got):\n%s", diff)
	}

	// A check needs a slot, and a Chrome that fails leaves nothing behind.
	id := r.create(alice, nil).ID
	_, err = r.CheckDefault(ctx, alice, "alice")
	wantCode(t, err, fault.TooManySessions)
	r.end(alice, id, none)
	for _, step := range []string{"restored", "check"} {
		r.browsers.fails(fault.New(fault.BrowserFailed, "fake", ""), step)
		_, err = r.CheckDefault(ctx, alice, "alice")
		wantCode(t, err, fault.BrowserFailed)
		r.browsers.works()
	}
	if r.dirs() != 1 {
		t.Errorf("%d directories", r.dirs())
	}
	r.end(alice, r.create(alice, nil).ID, none) // the slot is free
}

// A requested check counts as a session of its user and key, and a user has one at a time.
func TestChecksCountAsSessions(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxSessions, c.Quotas.Sessions = 3, of(2) })
	r.saved(alice, asDefault)
	r.setCheck(false)
	checking, goOn := make(chan struct{}, 3), make(chan struct{})
	finish := sync.OnceFunc(func() { close(goOn) })
	defer finish()
	r.browsers.on("check", func(*fakeChrome) error { checking <- struct{}{}; <-goOn; return nil })
	results := make(chan error, 2)
	for range 2 { // one runs, one waits for it
		go func() {
			_, err := r.CheckDefault(context.Background(), alice, "alice")
			results <- err
		}()
	}
	<-checking
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.CheckDefault(ended, alice, "alice")
	wantCode(t, err, fault.Timeout)
	if n := r.held(alice.KeyID, quota.Sessions); n != 1 || r.capacity.Free() != 2 {
		t.Errorf("%d sessions count for the key, %d slots are free", n, r.capacity.Free())
	}
	own := r.create(alice, nil).ID
	_, err = r.Create(t.Context(), alice, request.Create{})
	wantCode(t, err, fault.QuotaExceeded)
	others := r.create(bob, nil).ID
	r.end(bob, others, none)
	finish()
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	r.create(alice, nil)
	_, err = r.CheckDefault(t.Context(), alice, "alice")
	wantCode(t, err, fault.QuotaExceeded)
	r.end(alice, own, none)
	if _, err := r.CheckDefault(t.Context(), alice, "alice"); err != nil {
		t.Error(err)
	}
	if n := r.held(alice.KeyID, quota.Sessions); n != 1 {
		t.Errorf("%d sessions count after the checks", n)
	}
}

// A daemon that stops ends a check that is under way and waits for it.
func TestCheckWhenTheDaemonStops(t *testing.T) {
	r := newRig(t, nil)
	r.saved(alice, asDefault)
	r.setCheck(false)
	begun := make(chan struct{})
	r.browsers.on("check", func(*fakeChrome) error {
		close(begun)
		<-r.ctx.Done()
		return fault.New(fault.BrowserFailed, "fake", "")
	})
	result := make(chan error, 1)
	go func() {
		_, err := r.CheckDefault(context.Background(), alice, "alice")
		result <- err
	}()
	<-begun
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !r.browsers.last().dead() || r.dirs() != 0 {
		t.Errorf("dead %t, %d directories", r.browsers.last().dead(), r.dirs())
	}
	wantCode(t, <-result, fault.BrowserFailed)
	_, err := r.CheckDefault(t.Context(), alice, "alice")
	wantCode(t, err, fault.ShuttingDown)
}

// If the user requires a proven login, the default moves only with one, however the
// session ends and whatever else is requested. The snapshot is kept.
func TestLoginIsProvenBeforeTheDefaultMoves(t *testing.T) {
	overwrite := asDefault
	overwrite.Conflict = save.Overwrite
	persist := func(c *request.Create) { c.Persist = true }
	in := func(*fakeChrome) error { return nil }
	out := func(c *fakeChrome) error { c.loggedOut = true; return nil }
	broken := func(*fakeChrome) error { return fault.New(fault.BrowserFailed, "fake", "") }
	idle := func(c *request.Create) { c.Persist, c.Idle = true, 50*time.Millisecond }
	for name, test := range map[string]struct {
		ask     func(*request.Create)
		finds   func(*fakeChrome) error
		request request.End
		moved   bool
	}{
		"logged in":                   {nil, in, asDefault, true},
		"logged out":                  {nil, out, asDefault, false},
		"logged out, in memory":       {nil, out, memoryDefault, false},
		"logged out, to overwrite":    {nil, out, overwrite, false},
		"logged out, persistent":      {persist, out, none, false},
		"logged in, persistent":       {persist, in, none, true},
		"Chrome does not answer":      {nil, broken, asDefault, false},
		"logged out, idle":            {idle, out, request.End{}, false},
		"logged in, idle, persistent": {idle, in, request.End{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			_, good := r.saved(alice, asDefault)
			r.setCheck(true)
			checks := 0
			r.browsers.on("check", func(c *fakeChrome) error {
				if checks++; !c.shut {
					t.Error("checked while clients were connected")
				}
				return test.finds(c)
			})
			id := r.create(alice, test.ask).ID
			var a save.EndAnswer
			if test.request.Mode == "" {
				await(t, "the session has ended", func() bool { return r.sessions.Find(id) == nil })
				rec, err := r.Get(t.Context(), alice, id)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(rec.Outcome, &a); err != nil {
					t.Fatal(err)
				}
			} else {
				var err error
				if a, err = r.End(t.Context(), alice, id, test.request); err != nil {
					t.Fatal(err)
				}
			}
			if checks != 1 {
				t.Fatalf("%d checks", checks)
			}
			want := save.DefaultOutcome{Moved: test.moved, Version: 2}
			if !test.moved {
				want = save.DefaultOutcome{Version: 1, Reason: "login_check_failed"}
				if !strings.Contains(a.Message, want.Reason) {
					t.Errorf("message %q", a.Message)
				}
			}
			if a.Default == nil || a.Default.LoginCheck == nil || a.Default.LoginCheck.LoggedIn != test.moved || a.Snapshot == nil || a.Snapshot.Rescue {
				t.Fatalf("%+v", a)
			}
			checked := *a.Default.LoginCheck
			if (checked.Error != nil) != strings.HasPrefix(name, "Chrome") {
				t.Errorf("error %v", checked.Error)
			}
			a.Default.LoginCheck = nil
			if diff := cmp.Diff(want, *a.Default); diff != "" {
				t.Errorf("default (-want +got):\n%s", diff)
			}
			d, err := r.library.Default(t.Context(), alice, "alice")
			if err != nil || (d.SnapshotID != good) != test.moved {
				t.Errorf("the default is %+v, %v", d, err)
			}
			r.browsers.works()
			r.wantSnapshots(good, a.Snapshot.ID)
		})
	}
}

// Without a Chrome there is no proof. If no proof is required, or no default would move,
// nothing is checked.
func TestNoCheckBeforeDefault(t *testing.T) {
	r := newRig(t, nil)
	_, good := r.saved(alice, asDefault)
	r.setCheck(true)
	r.browsers.on("check", func(*fakeChrome) error { t.Error("checked"); return nil })
	r.end(alice, r.create(alice, nil).ID, none)
	kept := r.end(alice, r.create(alice, nil).ID, filesystem)
	if kept.Default != nil {
		t.Errorf("%+v", kept.Default)
	}
	// A session whose Chrome could not be reopened after a failed save.
	id := r.create(alice, nil).ID
	r.catalogue.fails(errBroken, "Commit")
	r.browsers.fails(errBroken, "restored")
	if _, err := r.End(t.Context(), alice, id, filesystem); err == nil {
		t.Fatal("the save did not fail")
	}
	r.catalogue.works()
	r.browsers.works()
	a := r.end(alice, id, asDefault)
	if a.Default.Moved || a.Default.Reason != "login_check_failed" || a.Default.LoginCheck.Error == nil {
		t.Errorf("%+v", a.Default)
	}
	r.setCheck(false)
	free := r.end(alice, r.create(alice, nil).ID, asDefault)
	if !free.Default.Moved || free.Default.LoginCheck != nil {
		t.Errorf("%+v", free.Default)
	}
	r.wantSnapshots(good, kept.Snapshot.ID, a.Snapshot.ID, free.Snapshot.ID)
}

// If the settings cannot be read, the default does not move and the session is not lost.
func TestUnreadableLoginCheckSettings(t *testing.T) {
	r := newRig(t, nil)
	id := r.create(alice, nil).ID
	r.catalogue.fails(errBroken, "User")
	if _, err := r.End(t.Context(), alice, id, asDefault); err == nil {
		t.Fatal("the end did not fail")
	}
	r.catalogue.works()
	if a := r.end(alice, id, asDefault); !a.Default.Moved {
		t.Errorf("%+v", a.Default)
	}
}

// An import moves the default only with a proven login, if the user requires that.
func TestImportIsProven(t *testing.T) {
	r := newRig(t, nil)
	first, _ := r.saved(alice, asDefault)
	r.setCheck(true)
	x := importer.Request{Format: library.FormatPlaywright, SaveAsDefault: true, Conflict: save.Overwrite}
	r.browsers.fails(errBroken, "check")
	a := r.importFile(alice, x, storageStateFile)
	if a.Default == nil || a.Default.Moved || a.Default.Reason != save.LoginCheckFailed || a.Default.LoginCheck == nil || a.Default.LoginCheck.Error == nil {
		t.Errorf("%+v", a.Default)
	}
	if d, err := r.library.Default(t.Context(), alice, "alice"); err != nil || d.Version != 1 || d.SessionID != first {
		t.Errorf("the default: %+v, %v", d, err)
	}
	r.browsers.works()
	a = r.importFile(alice, x, storageStateFile)
	if a.Default == nil || !a.Default.Moved || a.Default.Version != 2 || a.Default.LoginCheck == nil || !a.Default.LoginCheck.LoggedIn {
		t.Errorf("%+v", a.Default)
	}
	if n := r.dirs(); n != 0 {
		t.Errorf("%d run directories are left", n)
	}
}
