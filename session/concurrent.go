package session

import (
	"context"
	"slices"
	"strings"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// resolveSource finds the environment that a create starts from, and applies on_live:
// what to do if another session, live or being created, came from the same environment.
// It returns the session to share, or nil if a new one is to be made. From then on other
// creates find that new session.
//
// was is the record of an ended session that is resumed, else nil.
//
// A create that waits for another session gets the environment as that session leaves it.
// So resolveSource resolves the environment again after each wait.
func (s *Service) resolveSource(ctx, wait context.Context, c access.Caller, r request.Create, was *profiles.Session) (restore.Environment, *liveSession, error) {
	for {
		o, err := s.restorer.Resolve(ctx, c, r.SourceRequest())
		if err != nil || o.Source == nil {
			return o, nil, err
		}
		held := o
		held.Source = holding(was, *o.Source)
		other := s.sessions.Enter(r.SessionID, held, r.Shares())
		switch {
		case other == nil:
			again, err := nodeClaims{s}.enterNodes(ctx, wait, r, held)
			if err != nil || !again {
				return o, nil, err
			}
			continue // what held it may have left a newer environment
		case other.Renewal != nil:
			if err := s.sessions.AwaitRenewal(ctx, other.Renewal); err != nil {
				return o, nil, err
			}
			continue // the check may have saved a newer environment
		case r.OnLiveOrDefault() == request.OnLiveShare && other.Live != nil:
			l := other.Live.Session
			if l.rights.Allow(c, access.Drive) != nil { // the key may not drive that session
				return o, nil, inUse(other.ID)
			}
			limits, err := s.resolver.Egress(ctx, r, o.UserID)
			if err != nil {
				return o, nil, err
			}
			use, err := s.resolver.Limits(ctx, r, o.UserID)
			if err != nil {
				return o, nil, err
			}
			return o, l, l.checkShareable(ctx, r, limits, use)
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

// holding returns as what a session holds its environment. One that was moved, and came from its
// user's default, holds that as before. was is its record, or nil.
func holding(was *profiles.Session, from restore.Source) *restore.Source {
	if was != nil && was.Reason.Code == profiles.ReasonMoved && was.FromDefault {
		from = restore.Source{Type: restore.SourceUserDefault, ID: was.UserID}
	}
	return &from
}

// checkShareable returns an error if the session lacks what a create requests. A caller
// that names a proxy must not use another network path. limits and use are those of the
// create.
func (l *liveSession) checkShareable(ctx context.Context, r request.Create, limits browser.Egress, use browser.Limits) error {
	l.awaitRestart(ctx)
	return l.ask(ctx, func() error {
		other := r.Overrides.WithDefaults(l.request.Overrides).DifferingNames(l.request.Overrides)
		for _, id := range r.Extensions {
			if !slices.ContainsFunc(l.installed, func(e state.Extension) bool { return e.ID == id }) {
				other = append(other, "extension "+id)
			}
		}
		if r.Passkeys != nil && l.chrome != nil {
			if _, enabled := l.chrome.Passkeys(); *r.Passkeys != enabled {
				other = append(other, "passkeys")
			}
		}
		if !limits.Equal(l.egress) {
			other = append(other, "egress")
		}
		if r.Limits != (browser.Limits{}) && use != l.limits {
			other = append(other, "limits")
		}
		if l.partial {
			other = append(other, "origins")
		}
		if len(other) == 0 {
			return nil
		}
		return fault.New(fault.EnvironmentInUse, "session.create",
			"session %s uses this environment and cannot be shared, because these differ from the request: %s", l.id, strings.Join(other, ", "))
	})
}

func inUse(id string) error {
	return fault.New(fault.EnvironmentInUse, "session.create", "session %s uses this environment; end it, or set on_live to fork", id)
}
