package profilestest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// endOf returns an end of a session whose outcome shows the result of the move.
func endOf(session string) *profiles.End {
	return &profiles.End{
		SessionID: session, Status: profiles.StatusCompleted, Reason: profiles.ReasonIdle.With("deleted"), EndedAt: start.Add(time.Hour),
		Outcome: func(m profiles.MoveResult) (json.RawMessage, error) { return json.Marshal(m) },
	}
}

// testStored counts what users and keys have stored. Of commits at once, exactly those are
// admitted that the callback allows, and a refused one leaves nothing.
func testStored(f *fixture) {
	for _, id := range []string{"s1", "s2", "s3"} {
		s := profiles.Session{ID: id, UserID: "user", KeyID: "key " + id[:1], CreatedAt: start, ExpiresAt: start}
		if id == "s3" {
			s.UserID, s.KeyID = "other", "key of other"
		}
		f.must(f.c.Sessions.CreateSession(f.ctx, s))
	}
	refused := errors.New("refused")
	var calls sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for n := range 50 {
		calls.Go(func() {
			snap := profiles.Snapshot{ID: fmt.Sprint("snap-", n), SessionID: []string{"s1", "s2"}[n%2], UserID: "user", CreatedAt: start, SizeBytes: 10}
			_, err := f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: snap, Admit: func(user, key profiles.Stored) error {
				if user != key {
					f.Errorf("the user has %+v, the key of all its sessions %+v", user, key)
				}
				if user.Snapshots > 3 || user.Bytes > 35 {
					return refused
				}
				return nil
			}})
			if err != nil && err != refused {
				f.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made++
			}
		})
	}
	calls.Wait()
	for id, want := range map[string]profiles.Stored{"user": {Snapshots: 3, Bytes: 30}, "other": {}, "unknown": {}} {
		got, err := f.c.Snapshots.StoredByUser(f.ctx, id)
		f.must(err)
		f.same(got, want)
	}
	for id, want := range map[string]profiles.Stored{"key s": {Snapshots: 3, Bytes: 30}, "key of other": {}} {
		got, err := f.c.Snapshots.StoredByKey(f.ctx, id)
		f.must(err)
		f.same(got, want)
	}
	if made != 3 {
		f.Errorf("%d commits succeeded", made)
	}
	all, _, err := f.c.Snapshots.Snapshots(f.ctx, profiles.SnapshotFilter{UserID: "user"})
	f.must(err)
	_, err = f.c.Snapshots.DeleteSnapshot(f.ctx, all[0].ID)
	f.must(err)
	f.storedAre("key s", profiles.Stored{Snapshots: 2, Bytes: 20})
	got, err := f.c.Snapshots.StoredByUser(f.ctx, "user")
	f.must(err)
	f.same(got, profiles.Stored{Snapshots: 2, Bytes: 20})
	// Another key takes a session over, with its snapshots.
	of := int64(0)
	for _, s := range all[1:] {
		if s.SessionID == "s1" {
			of++
		}
	}
	_, err = f.c.Sessions.UpdateSession(f.ctx, "s1", func(s *profiles.Session) error { s.KeyID = "next"; return nil })
	f.must(err)
	f.storedAre("next", profiles.Stored{Snapshots: of, Bytes: 10 * of})
	f.storedAre("key s", profiles.Stored{Snapshots: 2 - of, Bytes: 20 - 10*of})
}

func (f *fixture) storedAre(keyID string, want profiles.Stored) {
	f.Helper()
	got, err := f.c.Snapshots.StoredByKey(f.ctx, keyID)
	f.must(err)
	f.same(got, want)
}

func testCommit(f *fixture) {
	s := f.session("s", "user")
	want := f.snapshot("snap", s)
	moved, err := f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: want, Move: &profiles.Move{}, End: endOf("s")})
	f.must(err)
	f.same(moved, profiles.MoveResult{Moved: true, Version: 1})

	got, err := f.c.Snapshots.Snapshot(f.ctx, "snap")
	f.must(err)
	f.same(got, want)
	d, err := f.c.Defaults.Default(f.ctx, "user")
	f.must(err)
	if d.MovedAt.IsZero() || d.MovedAt.Location() != time.UTC {
		f.Errorf("moved at %v", d.MovedAt)
	}
	d.MovedAt = time.Time{}
	f.same(d, profiles.Default{UserID: "user", Version: 1, SnapshotID: "snap", SessionID: "s"})

	s.Status, s.Reason, s.EndedAt = profiles.StatusCompleted, profiles.ReasonIdle.With("deleted"), start.Add(time.Hour)
	s.Outcome = json.RawMessage(`{"Moved":true,"Version":1,"Reason":""}`)
	ended, err := f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(ended, s)

	t := f.session("t", "user")
	f.same(f.commit("checkpoint", t, nil), profiles.MoveResult{Version: 1})
	alive, err := f.c.Sessions.Session(f.ctx, "t")
	f.must(err)
	f.same(alive, t)
}

// A session that continues may move the default again from the version that it made, and
// from no other.
func testCommitBase(f *fixture) {
	s := f.session("s", "user")
	f.commit("first", f.session("other", "user"), &profiles.Move{})
	for i, step := range []struct {
		move profiles.Move
		base int64
	}{{profiles.Move{From: 7}, 7}, {profiles.Move{From: 1}, 2}, {profiles.Move{Overwrite: true}, 3}} {
		f.commit(fmt.Sprint("checkpoint ", i), s, &step.move)
		s.BaseVersion = step.base
		got, err := f.c.Sessions.Session(f.ctx, "s")
		f.must(err)
		f.same(got, s)
	}
}

// A commit that fails at its last step changes nothing.
func testCommitAtomic(f *fixture) {
	s := f.session("s", "user")
	f.commit("first", s, &profiles.Move{})
	s.BaseVersion = 1
	refused := errors.New("refused")
	e := endOf("s")
	e.Outcome = func(m profiles.MoveResult) (json.RawMessage, error) {
		if !m.Moved || m.Version != 2 {
			f.Errorf("the outcome received %+v", m)
		}
		return nil, refused
	}
	c := profiles.Commit{Snapshot: f.snapshot("second", s), Move: &profiles.Move{From: 1}, End: e}
	if _, err := f.c.Snapshots.Commit(f.ctx, c); !errors.Is(err, refused) {
		f.Errorf("the callback's error was returned as %v", err)
	}
	got, err := f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(got, s)
	_, err = f.c.Snapshots.Snapshot(f.ctx, "second")
	f.code(err, fault.SnapshotNotFound)
	newest, err := f.c.Snapshots.NewestSnapshot(f.ctx, "s")
	f.must(err)
	if newest.ID != "first" {
		f.Errorf("newest is %s", newest.ID)
	}
	history, _, err := f.c.Defaults.DefaultHistory(f.ctx, "user", 0, "")
	f.must(err)
	if len(history) != 1 || history[0].SnapshotID != "first" {
		f.Errorf("history is %+v", history)
	}

	c.End = endOf("s") // a failed commit can be repeated
	moved, err := f.c.Snapshots.Commit(f.ctx, c)
	f.must(err)
	f.same(moved, profiles.MoveResult{Moved: true, Version: 2})
}

// An imported snapshot is recorded with its session, or neither is recorded.
func testCommitSession(f *fixture) {
	s := profiles.Session{ID: "s", UserID: "new", KeyID: "key", Engine: "chrome", Status: profiles.StatusCompleted,
		Reason: profiles.ReasonImported.With("imported"), CreatedAt: start, ExpiresAt: start, EndedAt: start}
	c := profiles.Commit{Session: &s, Snapshot: f.snapshot("snap", profiles.Session{ID: "s", UserID: "other"}), Move: &profiles.Move{}}
	_, err := f.c.Snapshots.Commit(f.ctx, c)
	f.code(err, fault.UserMismatch)
	_, err = f.c.Sessions.Session(f.ctx, "s")
	f.code(err, fault.SessionNotFound)

	c.Snapshot.UserID = "new"
	moved, err := f.c.Snapshots.Commit(f.ctx, c)
	f.must(err)
	f.same(moved, profiles.MoveResult{Moved: true, Version: 1})
	got, err := f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(got, s)

	c.Snapshot = f.snapshot("other", s)
	_, err = f.c.Snapshots.Commit(f.ctx, c)
	f.code(err, fault.SessionExists)
	_, err = f.c.Snapshots.Snapshot(f.ctx, "other")
	f.code(err, fault.SnapshotNotFound)
}

func testCommitBelongs(f *fixture) {
	s := f.session("s", "user")
	f.session("t", "user")

	c := profiles.Commit{Snapshot: f.snapshot("a", profiles.Session{ID: "none", UserID: "user"})}
	_, err := f.c.Snapshots.Commit(f.ctx, c)
	f.code(err, fault.SessionNotFound)
	c.Snapshot.SessionID, c.Snapshot.UserID = "s", "other"
	_, err = f.c.Snapshots.Commit(f.ctx, c)
	f.code(err, fault.UserMismatch)
	c.Snapshot.UserID, c.End = "user", endOf("t")
	_, err = f.c.Snapshots.Commit(f.ctx, c)
	f.code(err, fault.Internal)
	_, err = f.c.Snapshots.Snapshot(f.ctx, "a")
	f.code(err, fault.SnapshotNotFound)

	f.commit("a", s, nil)
	_, err = f.c.Snapshots.Commit(f.ctx, profiles.Commit{Snapshot: f.snapshot("a", s), End: endOf("s")})
	f.code(err, fault.StoreFailed)
	got, err := f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(got, s)
}

// Of many moves from the same version, exactly one moves the default. The other snapshots
// are kept, their sessions end, and the reason names the winner.
func testCommitRace(f *fixture) {
	const n = 20
	f.commit("base", f.session("base", "user"), &profiles.Move{})
	var commits []profiles.Commit
	for i := range n {
		s := f.session(fmt.Sprintf("s-%d-", i), "user")
		commits = append(commits, profiles.Commit{
			Snapshot: f.snapshot(fmt.Sprintf("snap-%d-", i), s), Move: &profiles.Move{From: 1}, End: endOf(s.ID),
		})
	}
	var mu sync.Mutex
	var won *profiles.Snapshot
	lost := map[string]profiles.MoveResult{}
	f.together(n, func(i int, c Catalogue) {
		moved, err := c.Snapshots.Commit(f.ctx, commits[i])
		f.code(err, "")
		mu.Lock()
		defer mu.Unlock()
		switch {
		case !moved.Moved:
			lost[commits[i].Snapshot.SessionID] = moved
		case won != nil:
			f.Errorf("both %s and %s won", won.ID, commits[i].Snapshot.ID)
		default:
			won = &commits[i].Snapshot
		}
	})
	if won == nil || len(lost) != n-1 {
		f.Fatalf("winner %v, %d lost", won, len(lost))
	}
	d, err := f.c.Defaults.Default(f.ctx, "user")
	f.must(err)
	if d.Version != 2 || d.SnapshotID != won.ID || d.SessionID != won.SessionID {
		f.Errorf("the default is %+v, the winner %s", d, won.ID)
	}
	for id, moved := range lost {
		if moved.Version != 2 || !strings.Contains(moved.Reason, won.ID) || !strings.Contains(moved.Reason, won.SessionID) {
			f.Errorf("%s received %+v, the winner is %s", id, moved, won.ID)
		}
		s, err := f.c.Sessions.Session(f.ctx, id)
		f.must(err)
		want, err := json.Marshal(moved)
		f.must(err)
		if s.Status != profiles.StatusCompleted || string(s.Outcome) != string(want) {
			f.Errorf("%s ended as %s with %s", id, s.Status, s.Outcome)
		}
		_, err = f.c.Snapshots.NewestSnapshot(f.ctx, id)
		f.must(err)
	}
}

func testEnd(f *fixture) {
	s := f.session("s", "user")
	refused := errors.New("refused")
	e := *endOf("s")
	e.Outcome = func(profiles.MoveResult) (json.RawMessage, error) { return nil, refused }
	if err := f.c.Sessions.EndSession(f.ctx, e); !errors.Is(err, refused) {
		f.Errorf("the callback's error was returned as %v", err)
	}
	got, err := f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(got, s)

	f.commit("snap", s, &profiles.Move{})
	f.must(f.c.Sessions.EndSession(f.ctx, *endOf("s")))
	s.Status, s.Reason, s.EndedAt = profiles.StatusCompleted, profiles.ReasonIdle.With("deleted"), start.Add(time.Hour)
	s.Outcome, s.BaseVersion = json.RawMessage(`{"Moved":false,"Version":1,"Reason":""}`), 1
	got, err = f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(got, s)

	f.session("bare", "user")
	f.must(f.c.Sessions.EndSession(f.ctx, profiles.End{SessionID: "bare", Status: profiles.StatusTerminated, EndedAt: start}))
	got, err = f.c.Sessions.Session(f.ctx, "bare")
	f.must(err)
	if got.Status != profiles.StatusTerminated || got.Outcome != nil || !got.EndedAt.Equal(start) {
		f.Errorf("it ended as %+v", got)
	}
	f.code(f.c.Sessions.EndSession(f.ctx, *endOf("none")), fault.SessionNotFound)
}
