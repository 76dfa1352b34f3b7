package profilestest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// A cancelled context is recognisable, changes nothing and leaves the catalogue usable.
func testCancelled(f *fixture) {
	s := f.session("s", "user")
	cancelled, cancel := context.WithCancel(f.ctx)
	cancel()
	_, _, claimErr := f.c.Answers.ClaimAnswer(cancelled, profiles.Answer{Scope: "s", Key: "k"})
	_, readErr := f.c.Sessions.Session(cancelled, "s")
	_, _, listErr := f.c.Sessions.Sessions(cancelled, profiles.SessionFilter{})

	during, cancel := context.WithCancel(f.ctx)
	defer cancel()
	e := endOf("s")
	e.Outcome = func(profiles.MoveResult) (json.RawMessage, error) { cancel(); return nil, nil }
	_, commitErr := f.c.Snapshots.Commit(during, profiles.Commit{Snapshot: f.snapshot("snap", s), Move: &profiles.Move{}, End: e})
	for _, err := range []error{claimErr, readErr, listErr, commitErr} {
		if !errors.Is(err, context.Canceled) {
			f.Errorf("a cancelled context gave %v", err)
		}
		f.code(err, fault.StoreFailed)
	}

	late, cancel := context.WithTimeout(f.ctx, 0)
	defer cancel()
	err := f.c.Sessions.EndSession(late, *endOf("s"))
	f.code(err, fault.Timeout)
	if !errors.Is(err, context.DeadlineExceeded) {
		f.Errorf("a deadline gave %v", err)
	}

	got, err := f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(got, s)
	_, err = f.c.Snapshots.Snapshot(f.ctx, "snap")
	f.code(err, fault.SnapshotNotFound)
	f.same(f.commit("snap", s, &profiles.Move{}), profiles.MoveResult{Moved: true, Version: 1})
}

// A callback that panics rolls back its transaction and blocks nothing.
func testPanic(f *fixture) {
	s := f.session("s", "user")
	func() {
		defer func() {
			if recover() == nil {
				f.Error("the panic was swallowed")
			}
		}()
		_, err := f.c.Sessions.UpdateSession(f.ctx, "s", func(s *profiles.Session) error { s.Goal = "changed"; panic("callback") })
		f.must(err)
	}()
	f.commit("snap", s, nil)
	got, err := f.c.Sessions.Session(f.ctx, "s")
	f.must(err)
	f.same(got, s)
}

// Readers see each commit completely while writers write.
func testConcurrent(f *fixture) {
	const writers, each = 4, 10
	var sessions []profiles.Session
	var commits [writers][each]profiles.Commit
	for w := range writers {
		s := f.session(fmt.Sprintf("s-%d", w), "user")
		sessions = append(sessions, s)
		for i := range each {
			commits[w][i] = profiles.Commit{
				Snapshot: f.snapshot(fmt.Sprintf("snap-%d-%d", w, i), s), Move: &profiles.Move{Overwrite: true}, End: endOf(s.ID),
			}
		}
	}
	f.together(2*writers, func(i int, h Catalogue) {
		if i < writers {
			for _, c := range commits[i] {
				_, err := h.Snapshots.Commit(f.ctx, c)
				f.code(err, "")
			}
			return
		}
		for range each {
			d, err := h.Defaults.Default(f.ctx, "user")
			if fault.Is(err, fault.DefaultNotFound) {
				continue
			}
			f.code(err, "")
			_, err = h.Snapshots.Snapshot(f.ctx, d.SnapshotID)
			f.code(err, "")
			s, err := h.Sessions.Session(f.ctx, d.SessionID)
			f.code(err, "")
			if s.Status != profiles.StatusCompleted {
				f.Errorf("the default names session %s in status %q", s.ID, s.Status)
			}
			_, _, err = h.Sessions.Sessions(f.ctx, profiles.SessionFilter{UserID: "user"})
			f.code(err, "")
		}
	})
	history, _, err := f.c.Defaults.DefaultHistory(f.ctx, "user", 0, "")
	f.must(err)
	if len(history) != writers*each || history[0].Version != writers*each {
		f.Errorf("%d versions, the newest %+v", len(history), history[0])
	}
	for _, s := range sessions {
		all, _, err := f.c.Snapshots.Snapshots(f.ctx, profiles.SnapshotFilter{SessionID: s.ID})
		f.must(err)
		if len(all) != each {
			f.Errorf("%s has %d snapshots", s.ID, len(all))
		}
	}
}

func testHealthClose(f *fixture) {
	f.session("s", "user")
	f.must(f.c.Database.Health(f.ctx))
	f.must(f.c.Database.Close())
	f.must(f.c.Database.Close())
	f.code(f.c.Database.Health(f.ctx), fault.StoreFailed)
	_, err := f.c.Sessions.Session(f.ctx, "s")
	f.code(err, fault.StoreFailed)
	f.code(f.c.Sessions.CreateSession(f.ctx, profiles.Session{ID: "t"}), fault.StoreFailed)
}
