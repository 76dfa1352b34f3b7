package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/stasisd/stasis/e2e/rig"
)

// lane is one caller, who makes, uses and ends one session after the other.
type lane struct {
	*soak
	user   string
	random *rand.Rand
	kept   []saved  // what it can come back to
	over   []string // sessions that it has forgotten, but for a default's snapshot
	has    bool     // a default environment
}

// life is one session. It may fail only where a Chrome was killed meanwhile;
// and one that came back must be logged in.
func (l *lane) life(ctx context.Context) error {
	kills := l.kills.Load()
	err := l.once(ctx)
	if err == nil || errors.Is(err, errLoggedOut) {
		return err
	}
	if l.kills.Load() == kills || ctx.Err() != nil {
		return err
	}
	l.count("lives that a killed Chrome ended")
	return nil
}

// saved is a session that was saved, and its engine: what was parked comes back
// in the same one alone.
type saved struct{ id, engine string }

// errLoggedOut says that somebody came back and was not logged in.
var errLoggedOut = errors.New("a restored session is not logged in")

func (l *lane) once(ctx context.Context) error {
	fields := l.source()
	s, err := l.h.create(ctx, fields)
	if err != nil {
		return err
	}
	came := "fresh"
	if s.Restored != nil {
		came = s.Restored.Path
	}
	if err := l.logsIn(ctx, s, came == "fresh"); err != nil {
		return l.afterwards(ctx, s, err)
	}
	l.count("came up " + came + ", " + s.Engine)
	if l.random.IntN(2) == 0 {
		url := fmt.Sprintf("%s/set?v=%d", l.h.site.URL, l.random.Int())
		if err := s.show(ctx, url, `document.title === "set"`); err != nil {
			return l.afterwards(ctx, s, err)
		}
	}
	if err := l.end(ctx, s); err != nil {
		return l.afterwards(ctx, s, err)
	}
	return nil
}

// source picks what a session comes from and its engine, and gives the
// create's fields.
func (l *lane) source() obj {
	fields := obj{"user_id": l.user, "wait_seconds": 30, "engine": []string{chrome, chrome, shell}[l.random.IntN(3)]}
	switch n := l.random.IntN(4); {
	case n == 0 && l.has:
		fields["restore_default_environment_from_user_id"] = l.user
	case n <= 2 && len(l.kept) > 0:
		from := l.kept[l.random.IntN(len(l.kept))]
		fields["restore_from_session_id"] = from.id
		if l.random.IntN(3) > 0 {
			fields["engine"] = from.engine
		}
	}
	return fields
}

// logsIn looks whether a session is logged in, or logs a fresh one in.
func (l *lane) logsIn(ctx context.Context, s *session, fresh bool) error {
	t, err := s.front(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	if fresh {
		return l.h.authenticate(ctx, t)
	}
	if err := t.visit(ctx, l.h.me(), `document.querySelector("#me")`); err != nil {
		return err
	}
	var is bool
	if err := t.evaluate(ctx, "Boolean("+loggedIn+")", &is); err != nil {
		return err
	}
	if !is {
		return fmt.Errorf("%w: session %s, %+v", errLoggedOut, s.ID, *s.Restored)
	}
	return nil
}

// end ends a session in a way that is picked, and remembers what it can come
// back to.
func (l *lane) end(ctx context.Context, s *session) error {
	how := []string{"none", "filesystem", "filesystem", "memory", "memory"}[l.random.IntN(5)]
	asDefault := how != "none" && l.random.IntN(3) == 0
	if _, err := s.end(ctx, how, asDefault); err != nil {
		return err
	}
	l.count("ended with " + how)
	if how != "none" {
		l.has = l.has || asDefault
		return l.keep(ctx, saved{s.ID, s.Engine})
	}
	return nil
}

// keptAtMost is how many sessions a lane can come back to.
const keptAtMost = 3

// keep remembers a session that was saved, and forgets the oldest.
func (l *lane) keep(ctx context.Context, s saved) error {
	l.kept = append(l.kept, s)
	if len(l.kept) <= keptAtMost {
		return nil
	}
	oldest := l.kept[0].id
	l.kept, l.over = l.kept[1:], append(l.over, oldest)
	return l.forget(ctx, oldest)
}

// forget deletes a session's snapshots, but for those that are a default.
func (l *lane) forget(ctx context.Context, id string) error {
	var list struct{ Snapshots []struct{ ID string } }
	if err := l.h.Call(ctx, http.MethodGet, "/v1/sessions/"+id+"/snapshots", nil, &list); err != nil {
		return err
	}
	for _, snapshot := range list.Snapshots {
		err := l.h.forget(ctx, snapshot.ID)
		var refused *rig.Refused
		if errors.As(err, &refused) && refused.Code == "snapshot_in_use" {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// afterwards sees to a session in which something failed. What the daemon
// could save of a Chrome that was killed is one more to come back to.
func (l *lane) afterwards(ctx context.Context, s *session, failed error) error {
	var list struct{ Snapshots []struct{ ID string } }
	err := errors.Join(l.h.Call(ctx, http.MethodDelete, "/v1/sessions/"+s.ID, nil, nil),
		l.h.Call(ctx, http.MethodGet, "/v1/sessions/"+s.ID+"/snapshots", nil, &list))
	// Of one that has just logged in, the last cookies may be missing.
	if err == nil && len(list.Snapshots) > 0 && s.Restored != nil {
		err = l.keep(ctx, saved{s.ID, s.Engine})
	} else {
		l.over = append(l.over, s.ID)
	}
	return errors.Join(failed, err)
}

// clear forgets all that the lane has kept.
func (l *lane) clear(ctx context.Context) error {
	if l.has {
		if err := l.h.Call(ctx, http.MethodDelete, "/v1/users/"+l.user+"/default", nil, nil); err != nil {
			return err
		}
	}
	for _, s := range l.kept {
		l.over = append(l.over, s.id)
	}
	for _, id := range l.over {
		if err := l.forget(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
