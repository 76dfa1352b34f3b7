package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"
)

// What a session of an honest user does. With these pauses, 22 sessions at a time take
// about two thirds of two processors.
const (
	strangerCommands = 20
	commandPause     = 4 * time.Second // at most, before each command
	lanePause        = 4 * time.Second // at most, between two sessions of a lane
)

// honestLane is one place of an honest user. It has a session nearly all the time.
type honestLane struct {
	*strangers
	user, name, engine string
	random             *rand.Rand
	kept               string   // the session that is restored next; "" for none
	snapshots          []string // all that it has saved
}

func newHonestLane(s *strangers, user, name, engine string, seed, number uint64) *honestLane {
	return &honestLane{strangers: s, user: user, name: name, engine: engine, random: rand.New(rand.NewPCG(seed, number))}
}

// until returns a random time, at most the longest.
func (l *honestLane) until(longest time.Duration) time.Duration {
	return time.Duration(l.random.Int64N(int64(longest)))
}

// run is one session. A failure is counted, and the next session begins without a save.
func (l *honestLane) run(ctx context.Context, end time.Time) {
	what, err := l.session(ctx, end)
	if err == nil {
		err = l.forgetOld(ctx)
	}
	if err != nil {
		l.kept = ""
		l.fail(what, fmt.Errorf("%s: %w", l.name, err))
		pause(ctx, l.until(lanePause))
	}
}

// session creates a session, and saves it; or restores the saved one, uses it and saves it
// again. A restored session must be logged in, and must be the lane's own. It returns what
// it has done last.
func (l *honestLane) session(ctx context.Context, end time.Time) (what string, err error) {
	fields := obj{"engine": l.engine, "wait_seconds": 60}
	what = "create"
	if l.kept != "" && l.random.IntN(2) == 0 {
		what, fields["restore_from_session_id"] = "restore", l.kept
	}
	s, restored := &session{host: l.h}, what == "restore"
	err = l.timed(what, func() error {
		return l.h.CallAs(ctx, l.keys[l.user], http.MethodPost, "/v1/sessions", fields, &s.Session)
	})
	if err != nil {
		return what, err
	}
	t, err := s.front(ctx)
	if err != nil {
		return "connect", err
	}
	defer t.Close()
	if err := l.use(ctx, t, restored); err != nil {
		return "login", fmt.Errorf("session %s, %s: %w", s.ID, what, err)
	}
	for range strangerCommands {
		if pause(ctx, l.until(commandPause)); time.Now().After(end) {
			break
		}
		if err := l.timed("command", func() error { return oneCommand(ctx, t) }); err != nil {
			return "command", err
		}
	}
	mode := []string{"filesystem", "filesystem", "memory"}[l.random.IntN(3)]
	var ended struct{ Snapshot struct{ ID string } }
	err = l.timed("save", func() error {
		return l.h.CallAs(ctx, l.keys[l.user], http.MethodDelete, "/v1/sessions/"+s.ID+"?save_snapshot_mode="+mode, nil, &ended)
	})
	if err == nil && ended.Snapshot.ID == "" {
		err = fmt.Errorf("session %s was not saved", s.ID)
	}
	if err != nil {
		return "save", err
	}
	l.kept, l.snapshots = s.ID, append(l.snapshots, ended.Snapshot.ID)
	pause(ctx, l.until(lanePause))
	return "forget", nil
}

// use logs in, or checks the login and the lane's own name in a restored session.
func (l *honestLane) use(ctx context.Context, t *tab, restored bool) error {
	if !restored {
		if err := l.h.authenticate(ctx, t); err != nil {
			return err
		}
		var is bool
		return t.evaluate(ctx, fmt.Sprintf(`localStorage.setItem("lane", %q), document.cookie = "lane=%s; max-age=86400", true`, l.name, l.name), &is)
	}
	if err := t.visit(ctx, l.h.me(), loggedIn); err != nil {
		return errors.Join(errLoggedOut, err)
	}
	var got string
	if err := t.evaluate(ctx, `localStorage.getItem("lane") + " " + document.cookie.match(/lane=([^;]*)/)?.[1]`, &got); err != nil {
		return err
	}
	if want := l.name + " " + l.name; got != want {
		return fmt.Errorf("the session is that of %q, want %q", got, want)
	}
	return nil
}

// forgetOld deletes all snapshots but the newest two, one of which may be a parked Chrome's.
func (l *honestLane) forgetOld(ctx context.Context) error {
	for len(l.snapshots) > 2 {
		if err := l.h.forget(ctx, l.snapshots[0]); err != nil {
			return err
		}
		l.snapshots = l.snapshots[1:]
	}
	return nil
}

// clear restores the lane's last save once more, and deletes everything that it has kept.
func (l *honestLane) clear(ctx context.Context) error {
	if l.kept == "" {
		return nil
	}
	s := &session{host: l.h}
	if err := l.h.CallAs(ctx, l.keys[l.user], http.MethodPost, "/v1/sessions", obj{"engine": l.engine, "restore_from_session_id": l.kept, "wait_seconds": 60}, &s.Session); err != nil {
		return fmt.Errorf("%s: the last save is lost: %w", l.name, err)
	}
	t, err := s.front(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := l.use(ctx, t, true); err != nil {
		return fmt.Errorf("%s: the last save: %w", l.name, err)
	}
	if _, err := s.end(ctx, "none", false); err != nil {
		return err
	}
	for _, id := range l.snapshots {
		if err := l.h.forget(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// pause waits, or returns when the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
