package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"

	"github.com/stasisd/stasis/e2e/rig"
)

// lane is one caller of the soak. It creates, uses and ends one session after the other.
type lane struct {
	*soak
	user       string
	random     *rand.Rand
	kept       []saved  // saved sessions that it can restore
	forgotten  []string // sessions whose snapshots it has deleted, except those of a default
	hasDefault bool     // hasDefault a default environment
}

// runSession is one session. It may fail only if a Chrome was killed meanwhile. A restored
// session must be logged in.
func (l *lane) runSession(ctx context.Context) error {
	kills := l.kills.Load()
	err := l.once(ctx)
	if err == nil || errors.Is(err, errLoggedOut) {
		return err
	}
	if l.kills.Load() == kills || ctx.Err() != nil {
		return err
	}
	l.count("sessions that a killed Chrome ended")
	return nil
}

// saved is a saved session and its engine. A parked Chrome can only be restored in the
// same engine.
type saved struct{ id, engine string }

// errLoggedOut is the error of a restored session without a login.
var errLoggedOut = errors.New("a restored session is not logged in")

func (l *lane) once(ctx context.Context) error {
	fields := l.source()
	s, err := l.h.create(ctx, fields)
	if err != nil {
		return err
	}
	restorePath := cmp.Or(s.Restored.Path, "fresh")
	if err := l.logsIn(ctx, s, restorePath == "fresh"); err != nil {
		return l.handleFailure(ctx, s, err)
	}
	l.count("created: " + restorePath + ", " + s.Engine)
	if l.random.IntN(2) == 0 {
		url := fmt.Sprintf("%s/set?v=%d", l.h.site.URL, l.random.Int())
		if err := s.show(ctx, url, `document.title === "set"`); err != nil {
			return l.handleFailure(ctx, s, err)
		}
	}
	if err := l.end(ctx, s); err != nil {
		return l.handleFailure(ctx, s, err)
	}
	return nil
}

// source chooses what a session restores and its engine. It returns the fields of the
// create.
func (l *lane) source() obj {
	fields := obj{"user_id": l.user, "wait_seconds": 30, "engine": []string{chrome, chrome, shell}[l.random.IntN(3)]}
	switch n := l.random.IntN(4); {
	case n == 0 && l.hasDefault:
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

// logsIn checks that a restored session is logged in, or logs a fresh one in.
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
		return fmt.Errorf("%w: session %s, %+v", errLoggedOut, s.ID, s.Restored)
	}
	return nil
}

// end ends a session with a random save mode, and keeps the saved session for later
// restores.
func (l *lane) end(ctx context.Context, s *session) error {
	how := []string{"none", "filesystem", "filesystem", "memory", "memory"}[l.random.IntN(5)]
	asDefault := how != "none" && l.random.IntN(3) == 0
	if _, err := s.end(ctx, how, asDefault); err != nil {
		return err
	}
	l.count("ended with " + how)
	if how != "none" {
		l.hasDefault = l.hasDefault || asDefault
		return l.keep(ctx, saved{s.ID, s.Engine})
	}
	return nil
}

// keptAtMost is how many saved sessions a lane keeps.
const keptAtMost = 3

// keep adds a saved session and removes the oldest.
func (l *lane) keep(ctx context.Context, s saved) error {
	l.kept = append(l.kept, s)
	if len(l.kept) <= keptAtMost {
		return nil
	}
	oldest := l.kept[0].id
	l.kept, l.forgotten = l.kept[1:], append(l.forgotten, oldest)
	return l.forget(ctx, oldest)
}

// forget deletes a session's snapshots, except those that are a default.
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

// handleFailure handles a session in which something failed. If the daemon saved a killed
// Chrome, the lane can restore that session later.
func (l *lane) handleFailure(ctx context.Context, s *session, failed error) error {
	var list struct{ Snapshots []struct{ ID string } }
	err := errors.Join(l.h.Call(ctx, http.MethodDelete, "/v1/sessions/"+s.ID, nil, nil),
		l.h.Call(ctx, http.MethodGet, "/v1/sessions/"+s.ID+"/snapshots", nil, &list))
	// A session that has just logged in may lack its last cookies.
	if err == nil && len(list.Snapshots) > 0 && s.Restored.Path != "" {
		err = l.keep(ctx, saved{s.ID, s.Engine})
	} else {
		l.forgotten = append(l.forgotten, s.ID)
	}
	return errors.Join(failed, err)
}

// clear deletes everything that the lane has kept.
func (l *lane) clear(ctx context.Context) error {
	if l.hasDefault {
		if err := l.h.Call(ctx, http.MethodDelete, "/v1/users/"+l.user+"/default", nil, nil); err != nil {
			return err
		}
	}
	for _, s := range l.kept {
		l.forgotten = append(l.forgotten, s.id)
	}
	for _, id := range l.forgotten {
		if err := l.forget(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
