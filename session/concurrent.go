package session

import (
	"context"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// settle finds what a create starts from, and applies on_live: what it does
// when another session, live or on its way, came from the same environment. It
// returns the session to share, or nil when a new one is to be made: from then
// on others meet that one.
//
// Who waits for another session gets the environment as that one leaves it, so
// it is looked up anew after each wait.
func (s *Service) settle(ctx, wait context.Context, c access.Caller, r request.Create) (restore.Environment, *live, error) {
	for {
		o, err := s.restorer.Resolve(ctx, c, r.Named())
		if err != nil || o.Source == nil {
			return o, nil, err
		}
		other := s.sessions.Enter(r.SessionID, o, r.OnLiveOrDefault() == request.OnLiveFork)
		switch {
		case other == nil:
			return o, nil, nil
		case other.Renewal != nil:
			if err := s.sessions.AwaitRenewal(ctx, other.Renewal); err != nil {
				return o, nil, err
			}
			continue // what it saved is the environment now
		case r.OnLiveOrDefault() == request.OnLiveShare && other.Live != nil:
			l := other.Live.Session
			if l.rights.Allow(c, access.Drive) != nil { // it is another key's to drive
				return o, nil, inUse(other.ID)
			}
			return o, l, l.shares(ctx, r)
		case r.OnLiveOrDefault() == request.OnLiveFail, r.OnLiveOrDefault() == request.OnLiveWait && r.Wait <= 0:
			return o, nil, inUse(other.ID)
		}
		select {
		case <-other.Done:
		case <-wait.Done():
			return o, nil, inUse(other.ID)
		}
	}
}

// shares refuses a create that asks for what the session does not have: who
// names a proxy must not go out by another way.
func (l *live) shares(ctx context.Context, r request.Create) error {
	l.awaitRestart(ctx)
	return l.ask(ctx, func() error {
		other := r.Overrides.Over(l.request.Overrides).Differ(l.request.Overrides)
		for _, id := range r.Extensions {
			if !slices.ContainsFunc(l.installed, func(e state.Extension) bool { return e.ID == id }) {
				other = append(other, "extension "+id)
			}
		}
		if r.Passkeys != nil && l.chrome != nil {
			if _, given := l.chrome.Passkeys(); *r.Passkeys != given {
				other = append(other, "passkeys")
			}
		}
		if l.partial {
			other = append(other, "origins")
		}
		if len(other) == 0 {
			return nil
		}
		return fault.New(fault.EnvironmentInUse, "session.create",
			"session %s holds this environment and cannot be shared, for it differs from what is asked for: %s", l.id, strings.Join(other, ", "))
	})
}

func inUse(id string) error {
	return fault.New(fault.EnvironmentInUse, "session.create", "session %s holds this environment", id)
}
