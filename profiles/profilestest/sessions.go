package profilestest

import (
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

func testSessions(f *fixture) {
	want := f.session("s", "user")
	got, err := f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(got, want)
	if string(got.Restored) != string(want.Restored) {
		f.Errorf("the restore report changed: %s", got.Restored)
	}

	bare := profiles.Session{ID: "bare", UserID: "user", Status: profiles.StatusInitializing, CreatedAt: start}
	f.must(f.c.Sessions.CreateSession(f.ctx, bare))
	got, err = f.c.Sessions.Session(f.ctx, "bare")
	f.must(err)
	f.same(got, bare)
	if got.Restored != nil || got.Outcome != nil || got.Labels != nil || !got.EndedAt.IsZero() {
		f.Errorf("unset fields have values: %+v", got)
	}

	_, err = f.c.Sessions.Session(f.ctx, "none")
	f.code(err, fault.SessionNotFound)
}

// A create with a taken ID fails for every caller and changes nothing. Of many concurrent
// creates of one ID, one succeeds.
func testSessionExists(f *fixture) {
	want := f.session("s", "user")
	other := want
	other.UserID, other.Goal = "other", "taken over"
	f.code(f.c.Sessions.CreateSession(f.ctx, other), fault.SessionExists)
	got, err := f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(got, want)

	var won atomic.Int32
	f.together(20, func(_ int, c Catalogue) {
		err := c.Sessions.CreateSession(f.ctx, profiles.Session{ID: "raced", UserID: "user", CreatedAt: start})
		if err == nil {
			won.Add(1)
			return
		}
		f.code(err, fault.SessionExists)
	})
	if n := won.Load(); n != 1 {
		f.Errorf("%d creates of one ID succeeded", n)
	}
}

func testSessionUpdate(f *fixture) {
	want := f.session("s", "user")
	untouched := f.session("t", "user")
	want.Status, want.Reason, want.KeyID, want.AgentName = profiles.StatusError, profiles.ReasonKilled.With("died"), "key2", "agent2"
	want.Goal, want.Engine, want.RequestHash = "goal2", "shell", "hash2"
	want.RunDir, want.Discard, want.Sealed, want.SealedRequest = "", false, nil, []byte("other")
	want.ExpiresAt, want.EndedAt = start.Add(2*time.Hour), start.Add(time.Minute)
	want.Labels, want.Restored, want.Outcome = nil, nil, []byte(`{"deleted":true}`)
	want.BaseSnapshotID, want.BaseVersion = "base2", 9
	got, err := f.c.Sessions.UpdateSession(f.ctx, "s", func(s *profiles.Session) error { *s = want; return nil })
	f.must(err)
	f.same(got, want)
	got, err = f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(got, want)
	got, err = f.c.Sessions.Session(f.ctx, "t")
	f.must(err)
	f.same(got, untouched)

	refused := errors.New("refused")
	_, err = f.c.Sessions.UpdateSession(f.ctx, "s", func(s *profiles.Session) error { s.Goal = "changed"; return refused })
	if !errors.Is(err, refused) {
		f.Errorf("the callback's error was returned as %v", err)
	}
	for _, change := range []func(*profiles.Session){
		func(s *profiles.Session) { s.ID = "t" },
		func(s *profiles.Session) { s.UserID = "other" },
		func(s *profiles.Session) { s.CreatedAt = start.Add(time.Hour) },
	} {
		_, err = f.c.Sessions.UpdateSession(f.ctx, "s", func(s *profiles.Session) error { s.Goal = "changed"; change(s); return nil })
		f.code(err, fault.Internal)
	}
	got, err = f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(got, want)

	_, err = f.c.Sessions.UpdateSession(f.ctx, "none", func(*profiles.Session) error { f.Error("called"); return nil })
	f.code(err, fault.SessionNotFound)

	f.together(20, func(_ int, c Catalogue) {
		_, err := c.Sessions.UpdateSession(f.ctx, "t", func(s *profiles.Session) error { s.BaseVersion++; return nil })
		f.code(err, "")
	})
	got, err = f.c.Sessions.Session(f.ctx, "t")
	f.must(err)
	if got.BaseVersion != untouched.BaseVersion+20 {
		f.Errorf("updates were lost: %d of 20 are there", got.BaseVersion-untouched.BaseVersion)
	}
}

// Pages follow each other without a gap or a repeat. This holds if sessions have the same
// time, if new ones are added in between, and if a cursor's session no longer matches the
// filter.
func testSessionPages(f *fixture) {
	names := ids("s", 10)
	for i, id := range names {
		f.must(f.c.Sessions.CreateSession(f.ctx, profiles.Session{
			ID: id, UserID: "user", Status: profiles.StatusReady, CreatedAt: start.Add(time.Duration(i/4) * time.Millisecond),
		}))
	}
	all, next, err := f.c.Sessions.Sessions(f.ctx, profiles.SessionFilter{})
	f.must(err)
	if len(all) != 10 || next != "" {
		f.Fatalf("got %d sessions and cursor %q", len(all), next)
	}
	for i, s := range all[1:] {
		if was := all[i]; s.CreatedAt.After(was.CreatedAt) || s.CreatedAt.Equal(was.CreatedAt) && s.ID > was.ID {
			f.Errorf("%s comes after %s", s.ID, was.ID)
		}
	}

	var paged []profiles.Session
	filter := profiles.SessionFilter{UserID: "user", Status: profiles.StatusReady, Limit: 3}
	for pages := 1; ; pages++ {
		page, next, err := f.c.Sessions.Sessions(f.ctx, filter)
		f.must(err)
		paged = append(paged, page...)
		if next == "" {
			break
		}
		if len(page) != 3 || next != page[2].ID || pages > 4 {
			f.Fatalf("page %d has %d sessions and cursor %q", pages, len(page), next)
		}
		filter.StartAfter = next
		f.session("new-"+next, "user")
		_, err = f.c.Sessions.UpdateSession(f.ctx, next, func(s *profiles.Session) error { s.Status = profiles.StatusPaused; return nil })
		f.must(err)
	}
	f.same(paged, all)

	// The next page leaves out the cursor's session even if the session still matches.
	rest, _, err := f.c.Sessions.Sessions(f.ctx, profiles.SessionFilter{StartAfter: all[4].ID})
	f.must(err)
	for i := range all {
		all[i].Status = ""
	}
	for i := range rest {
		rest[i].Status = ""
	}
	f.same(rest, all[5:])

	exact, next, err := f.c.Sessions.Sessions(f.ctx, profiles.SessionFilter{Status: profiles.StatusPaused, Limit: 3})
	f.must(err)
	if len(exact) != 3 || next != "" {
		f.Errorf("a page that holds all has %d sessions and cursor %q", len(exact), next)
	}
	f.session("other", "somebody")
	for _, cursor := range []string{"none", "other"} {
		_, _, err = f.c.Sessions.Sessions(f.ctx, profiles.SessionFilter{UserID: "user", StartAfter: cursor})
		f.code(err, fault.InvalidField)
	}
}

func testSessionFilter(f *fixture) {
	for _, user := range []string{"a", "b"} {
		for _, status := range []profiles.Status{
			profiles.StatusInitializing, profiles.StatusReady, profiles.StatusRunning, profiles.StatusPaused,
			profiles.StatusCompleted, profiles.StatusTerminated, profiles.StatusError,
		} {
			s := profiles.Session{ID: user + "-" + string(status), UserID: user, Status: status, CreatedAt: start}
			f.must(f.c.Sessions.CreateSession(f.ctx, s))
		}
	}
	for _, test := range []struct {
		filter profiles.SessionFilter
		want   string
	}{
		{profiles.SessionFilter{UserID: "a", Live: true}, "a-running a-ready a-paused a-initializing"},
		{profiles.SessionFilter{Status: profiles.StatusError}, "b-error a-error"},
		{profiles.SessionFilter{UserID: "b", Status: profiles.StatusReady}, "b-ready"},
		{profiles.SessionFilter{UserID: "b", Status: profiles.StatusError, Live: true}, ""},
		{profiles.SessionFilter{UserID: "A"}, ""},
		{profiles.SessionFilter{Live: true, Limit: 2}, "b-running b-ready"},
	} {
		page, _, err := f.c.Sessions.Sessions(f.ctx, test.filter)
		f.must(err)
		var got []string
		for _, s := range page {
			got = append(got, s.ID)
		}
		if got := strings.Join(got, " "); got != test.want {
			f.Errorf("%+v: got %q, want %q", test.filter, got, test.want)
		}
	}
}

// A user ID is any UTF-8, and only equal bytes are the same user.
func testUserIDs(f *fixture) {
	users := []string{
		"u", "U", "u ", " u", "u\x00", "u\x00b", "'; DROP TABLE users; --", "../../etc/passwd", "%", "_", "u\n", "é", "e\u0301",
		"\U0001F9CA", "\u202eabc", "\ufeff", "0", "00", "1e3", "NULL", strings.Repeat("x", 256), strings.Repeat("ж", 128),
	}
	for i, user := range users {
		s := profiles.Session{ID: ids("s", len(users))[i], UserID: user, CreatedAt: start}
		f.must(f.c.Sessions.CreateSession(f.ctx, s))
		snap := f.snapshot("snap-"+s.ID, s)
		_, err := f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: snap, Move: &profiles.Move{}})
		f.must(err)
	}
	for i, user := range users {
		id := ids("s", len(users))[i]
		page, _, err := f.c.Sessions.Sessions(f.ctx, profiles.SessionFilter{UserID: user})
		f.must(err)
		if len(page) != 1 || page[0].ID != id || page[0].UserID != user {
			f.Errorf("user %q has sessions %+v", user, page)
		}
		d, err := f.c.Defaults.Default(f.ctx, user)
		f.must(err)
		if d.UserID != user || d.SnapshotID != "snap-"+id || d.Version != 1 {
			f.Errorf("user %q has default %+v", user, d)
		}
	}
}

// The sealed data of a session is removed when it ends.
func testSealedEnds(f *fixture) {
	want := profiles.Session{ID: "s", UserID: "user", Status: profiles.StatusReady, CreatedAt: start, Sealed: []byte("sealed")}
	f.must(f.c.Sessions.CreateSession(f.ctx, want))
	got, err := f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(got, want)
	f.must(f.c.Sessions.EndSession(f.ctx, profiles.End{SessionID: "s", Status: profiles.StatusCompleted, EndedAt: start}))
	got, err = f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	if got.Sealed != nil {
		f.Errorf("it still has %q", got.Sealed)
	}
}
