package session

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
)

// The first source that is named decides. Those of lower rank are not looked up.
func TestPrecedenceOfSources(t *testing.T) {
	r := newRig(t, nil)
	one, oneSnap := r.saved(alice, filesystem)
	two, twoSnap := r.saved(alice, filesystem)
	_, standard := r.saved(alice, asDefault)
	for name, test := range map[string]struct {
		ask    func(*request.Create)
		source *restore.Source
		snap   string
	}{
		"nothing":              {nil, nil, ""},
		"session":              {func(c *request.Create) { c.FromSession = one }, &restore.Source{Type: restore.SourceSession, ID: one}, oneSnap},
		"session over all":     {func(c *request.Create) { c.FromSession, c.FromEnvironment, c.FromDefaultOf = one, two, "alice" }, &restore.Source{Type: restore.SourceSession, ID: one}, oneSnap},
		"lower ones unseen":    {func(c *request.Create) { c.FromSession, c.FromEnvironment, c.FromDefaultOf = one, "gone", "bob" }, &restore.Source{Type: restore.SourceSession, ID: one}, oneSnap},
		"environment session":  {func(c *request.Create) { c.FromEnvironment, c.FromDefaultOf = two, "alice" }, &restore.Source{Type: restore.SourceEnvironment, ID: two}, twoSnap},
		"environment snapshot": {func(c *request.Create) { c.FromEnvironment = oneSnap }, &restore.Source{Type: restore.SourceEnvironment, ID: oneSnap}, oneSnap},
		"default":              {func(c *request.Create) { c.FromDefaultOf = "alice" }, &restore.Source{Type: restore.SourceUserDefault, ID: "alice"}, standard},
	} {
		t.Run(name, func(t *testing.T) {
			info := r.create(alice, test.ask)
			defer r.end(alice, info.ID, none)
			if test.source == nil {
				if info.Restored != nil {
					t.Errorf("restored %+v", info.Restored)
				}
				return
			}
			if info.Restored == nil {
				t.Fatal("the session was not restored")
			}
			if diff := cmp.Diff(*test.source, info.Restored.Source); diff != "" || info.Restored.SnapshotID != test.snap {
				t.Errorf("snapshot %s, want %s; source (-want +got):\n%s", info.Restored.SnapshotID, test.snap, diff)
			}
			if got := r.browsers.last().restored.Cookies; len(got) != 1 {
				t.Errorf("state document: %+v", got)
			}
		})
	}
	t.Run("a missing source of higher rank is an error", func(t *testing.T) {
		_, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.FromSession, c.FromDefaultOf = "gone", "alice" }))
		wantCode(t, err, fault.SnapshotNotFound)
		info := r.create(alice, func(c *request.Create) { c.FromSession, c.FromDefaultOf, c.FreshIfNone = "gone", "alice", true })
		if info.Restored != nil {
			t.Errorf("restored %+v", info.Restored)
		}
	})
}

// A missing source is an error; only if_missing=fresh makes a fresh session.
func TestIfMissing(t *testing.T) {
	r := newRig(t, nil)
	unsaved := r.create(alice, nil).ID
	r.end(alice, unsaved, none)
	running := r.create(alice, nil).ID
	base, baseSnap := r.saved(alice, filesystem)
	var restored [2]string // the fresh session of a subtest replaces one
	for i := range restored {
		restored[i] = r.create(alice, func(c *request.Create) { c.FromSession = base }).ID
		r.end(alice, restored[i], none)
	}
	for name, test := range map[string]struct {
		ask  func(*request.Create)
		code fault.Code
		says string // the message names the field and the ID, and what can be done
	}{
		"session never saved": {func(c *request.Create) { c.FromSession = unsaved }, fault.NoSnapshot,
			"restore_from_session_id: session " + unsaved + " was never saved; it has ended"},
		"restored session never saved": {func(c *request.Create) { c.FromSession = restored[0] }, fault.NoSnapshot,
			"it was restored from snapshot " + baseSnap + ", so create with restore_from_environment_id"},
		"its resume": {func(c *request.Create) { c.SessionID, c.Resume = restored[1], true }, fault.NoSnapshot,
			"it was restored from snapshot " + baseSnap + ", so create with restore_from_environment_id"},
		"session running": {func(c *request.Create) { c.FromSession = running }, fault.NoSnapshot,
			"session " + running + " was never saved; end it with save_snapshot_mode=filesystem"},
		"unknown session": {func(c *request.Create) { c.FromSession = "no-such" }, fault.SnapshotNotFound,
			`restore_from_session_id: there is no session "no-such"`},
		"unknown environment": {func(c *request.Create) { c.FromEnvironment = "no-such" }, fault.SnapshotNotFound,
			`restore_from_environment_id: there is no snapshot or session "no-such"`},
		"environment not saved": {func(c *request.Create) { c.FromEnvironment = unsaved }, fault.NoSnapshot,
			"restore_from_environment_id: session " + unsaved},
		"no default": {func(c *request.Create) { c.FromDefaultOf = "alice" }, fault.NoSnapshot,
			`restore_default_environment_from_user_id: user "alice" has no default environment`},
		"snapshot that is no ID": {func(c *request.Create) { c.FromEnvironment = "../../etc/passwd" }, fault.SnapshotNotFound,
			`"../../etc/passwd"`},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(r.browsers.all())
			_, err := r.Create(t.Context(), alice, newCreate(test.ask))
			wantCode(t, err, test.code)
			if got := fault.MessageOf(err); !strings.Contains(got, test.says) {
				t.Errorf("got %q, want %q", got, test.says)
			}
			if len(r.browsers.all()) != before {
				t.Error("a Chrome was started")
			}
			info := r.create(alice, func(c *request.Create) { test.ask(c); c.FreshIfNone = true })
			if info.Restored != nil || info.UserID != "alice" {
				t.Errorf("%+v", info)
			}
			r.end(alice, info.ID, none)
		})
	}
}

// A fresh session in place of a user's environment belongs to that user, so that its save
// is found there next time. For a key that may not act for the user, the source does not
// exist.
func TestFreshSessionBelongsToSourceUser(t *testing.T) {
	r := newRig(t, nil)
	unsaved := r.create(alice, nil).ID
	for name, ask := range map[string]func(*request.Create){
		"default": func(c *request.Create) { c.FromDefaultOf = "alice" },
		"session": func(c *request.Create) { c.FromSession = unsaved },
	} {
		fresh := func(c *request.Create) { ask(c); c.FreshIfNone = true }
		info := r.create(admin, fresh)
		if info.UserID != "alice" || info.Restored != nil {
			t.Errorf("%s: the session is %s's, restored %v", name, info.UserID, info.Restored)
		}
		r.end(admin, info.ID, none)
	}
	_, err := r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.FromDefaultOf = "bob" }))
	wantCode(t, err, fault.SnapshotNotFound)
	_, err = r.Create(t.Context(), alice, newCreate(func(c *request.Create) { c.FromDefaultOf, c.FreshIfNone = "bob", true }))
	wantCode(t, err, fault.Forbidden)
}

// What belongs to a user that the key may not act for does not exist for the key.
func TestOwnership(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	ended, snap := r.saved(alice, asDefault)
	live := r.create(alice, nil).ID
	for name, ask := range map[string]func(*request.Create){
		"session":     func(c *request.Create) { c.FromSession = ended },
		"environment": func(c *request.Create) { c.FromEnvironment = ended },
		"snapshot":    func(c *request.Create) { c.FromEnvironment = snap },
		"default":     func(c *request.Create) { c.FromDefaultOf = "alice" },
	} {
		t.Run("restore "+name, func(t *testing.T) {
			_, err := r.Create(ctx, bob, newCreate(ask))
			wantCode(t, err, fault.SnapshotNotFound)
			// An admin may restore it, and it stays the user's.
			info := r.create(admin, ask)
			if info.UserID != "alice" {
				t.Errorf("the session belongs to %s", info.UserID)
			}
			r.end(admin, info.ID, none)
			_, err = r.Create(ctx, admin, newCreate(func(c *request.Create) { ask(c); c.UserID = "bob" }))
			wantCode(t, err, fault.UserMismatch)
			_, err = r.Create(ctx, admin, newCreate(func(c *request.Create) { ask(c); c.UserID, c.FreshIfNone = "bob", true }))
			wantCode(t, err, fault.UserMismatch)
		})
	}
	_, err := r.Create(ctx, bob, newCreate(func(c *request.Create) { c.UserID = "alice" }))
	wantCode(t, err, fault.Forbidden)

	for name, call := range map[string]func(access.Caller) error{
		"get":        func(c access.Caller) error { _, err := r.Get(ctx, c, live); return err },
		"get ended":  func(c access.Caller) error { _, err := r.Get(ctx, c, ended); return err },
		"status":     func(c access.Caller) error { _, err := r.Status(ctx, c, live); return err },
		"report":     func(c access.Caller) error { _, err := r.RestoreReport(ctx, c, live); return err },
		"navigate":   func(c access.Caller) error { _, err := r.Navigate(ctx, c, live, "https://a.example/"); return err },
		"screenshot": func(c access.Caller) error { _, err := r.Screenshot(ctx, c, live); return err },
		"pages":      func(c access.Caller) error { _, err := r.Pages(ctx, c, live); return err },
		"pause":      func(c access.Caller) error { _, err := r.Pause(ctx, c, live); return err },
		"resume":     func(c access.Caller) error { _, err := r.Resume(ctx, c, live, ""); return err },
		"cancel":     func(c access.Caller) error { _, err := r.Cancel(ctx, c, live); return err },
		"files":      func(c access.Caller) error { _, err := r.ListFiles(ctx, c, live); return err },
		"snapshots":  func(c access.Caller) error { _, _, err := r.library.Snapshots(ctx, c, ended, 10, ""); return err },
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, call(bob), fault.SessionNotFound) })
	}
	for name, call := range map[string]func(access.Caller) error{
		"get":    func(c access.Caller) error { _, err := r.library.Snapshot(ctx, c, snap); return err },
		"delete": func(c access.Caller) error { return r.library.DeleteSnapshot(ctx, c, snap) },
		"make it a default": func(c access.Caller) error {
			_, err := r.library.SetDefault(ctx, c, c.UserID, snap, nil)
			return err
		},
	} {
		t.Run("snapshot "+name, func(t *testing.T) { wantCode(t, call(bob), fault.SnapshotNotFound) })
	}
	for name, call := range map[string]func(access.Caller) error{
		"default":        func(c access.Caller) error { _, err := r.library.Default(ctx, c, "alice"); return err },
		"set default":    func(c access.Caller) error { _, err := r.library.SetDefault(ctx, c, "alice", snap, nil); return err },
		"delete default": func(c access.Caller) error { return r.library.DeleteDefault(ctx, c, "alice") },
		"history": func(c access.Caller) error {
			_, _, err := r.library.DefaultHistory(ctx, c, "alice", 10, "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, call(bob), fault.UserNotFound) })
	}
	for _, id := range []string{live, ended, "no-such"} {
		a, err := r.End(ctx, bob, id, none)
		if err != nil || a.Deleted || a.Snapshot != nil {
			t.Errorf("bob ends %s: %+v, %v", id, a, err)
		}
	}
	if page, _, err := r.List(ctx, bob, request.List{UserID: "alice", Limit: 10}); err != nil || len(page) != 0 {
		t.Errorf("bob lists %d of alice's: %v", len(page), err)
	}
	if page, _, err := r.List(ctx, bob, request.List{Limit: 10}); err != nil || len(page) != 0 {
		t.Errorf("bob lists %d: %v", len(page), err)
	}
	for _, userID := range []string{"", "alice"} {
		if page, _, err := r.library.AllSnapshots(ctx, bob, userID, 10, ""); err != nil || len(page) != 0 {
			t.Errorf("bob lists %d snapshots of %q: %v", len(page), userID, err)
		}
	}
	if page, _, err := r.library.AllSnapshots(ctx, admin, "", 10, ""); err != nil || len(page) == 0 {
		t.Errorf("an admin lists %d snapshots: %v", len(page), err)
	}
	if a, err := r.EndAll(ctx, bob, request.EndAll{End: none}); err != nil || a.Deleted {
		t.Errorf("bob ends all his: %+v, %v", a, err)
	}
	_, err = r.EndAll(ctx, bob, request.EndAll{End: none, UserID: "alice"})
	wantCode(t, err, fault.Forbidden)
	_, err = r.EndAll(ctx, bob, request.EndAll{End: none, All: true})
	wantCode(t, err, fault.Forbidden)
	if r.status(live) != profiles.StatusReady {
		t.Errorf("alice's session is %s", r.status(live))
	}
	r.wantSnapshots(snap)
}

// A key without the right "use" may do nothing here.
func TestRights(t *testing.T) {
	r := newRig(t, nil)
	ctx := t.Context()
	id := r.create(alice, nil).ID
	idle := access.Caller{KeyID: "key-i", UserID: "alice", Rights: []access.Right{access.RightSecrets}}
	for name, call := range map[string]func() error{
		"create":   func() error { _, err := r.Create(ctx, idle, newCreate(nil)); return err },
		"get":      func() error { _, err := r.Get(ctx, idle, id); return err },
		"list":     func() error { _, _, err := r.List(ctx, idle, request.List{}); return err },
		"navigate": func() error { _, err := r.Navigate(ctx, idle, id, "https://a.example/"); return err },
		"end":      func() error { _, err := r.End(ctx, idle, id, none); return err },
		"end all":  func() error { _, err := r.EndAll(ctx, idle, request.EndAll{}); return err },
		"ticket":   func() error { _, _, err := r.apiKeys.NewTicket(ctx, idle); return err },
		"default":  func() error { _, err := r.library.Default(ctx, idle, "alice"); return err },
		"keys":     func() error { _, err := r.apiKeys.Keys(ctx, alice); return err },
		"new key": func() error {
			_, _, err := r.apiKeys.CreateKey(ctx, alice, access.KeyOptions{Name: "k", UserID: "alice"})
			return err
		},
		"no key": func() error { return r.apiKeys.DeleteKey(ctx, alice, "key-a") },
	} {
		t.Run(name, func(t *testing.T) { wantCode(t, call(), fault.Forbidden) })
	}
}
