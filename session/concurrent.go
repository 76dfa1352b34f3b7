package session

import (
	"context"
	"slices"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/login/renewal"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// claim is a session that is on its way.
type claim struct {
	keyID  string               // whose create it is
	origin *restore.Environment // nil until it is settled what it starts from
	done   chan struct{}        // closed when it is live, or has come to nothing
}

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
		other := s.enter(r.SessionID, o, r.OnLiveOrDefault() == request.OnLiveFork)
		switch {
		case other == nil:
			return o, nil, nil
		case other.renewal != nil:
			if err := s.hurry(ctx, other.renewal); err != nil {
				return o, nil, err
			}
			continue // what it saved is the environment now
		case r.OnLiveOrDefault() == request.OnLiveShare && other.live != nil:
			if other.live.allow(c, access.Drive) != nil { // it is another key's to drive
				return o, nil, inUse(other.id)
			}
			return o, other.live, other.live.shares(ctx, r)
		case r.OnLiveOrDefault() == request.OnLiveFail, r.OnLiveOrDefault() == request.OnLiveWait && r.Wait <= 0:
			return o, nil, inUse(other.id)
		}
		select {
		case <-other.done:
		case <-wait.Done():
			return o, nil, inUse(other.id)
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

// holder is who an environment is held by: a session, or a scheduled check.
type holder struct {
	id      string
	live    *live            // nil while it is on its way
	done    <-chan struct{}  // closed when it holds it no longer, or is live
	renewal *renewal.Renewal // nil: a session
}

// enter notes that the session on its way starts from the origin, unless
// another one of the same user came from the same source or snapshot and
// company is not wanted: that one is returned. So is a scheduled check of it,
// which is nobody's company.
func (s *Service) enter(id string, o restore.Environment, company bool) *holder {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.renewing; r != nil && o.Same(r.UserID(), *r.Environment().Source, r.SnapshotID()) {
		return &holder{renewal: r}
	}
	if !company {
		if other := s.holderOf(id, o); other != nil {
			return other
		}
	}
	s.creating[id].origin = &o
	return nil
}

// holderOf finds another session, live or on its way, that has what an origin
// gives; nil where there is none. The caller holds the lock.
func (s *Service) holderOf(id string, o restore.Environment) *holder {
	for _, l := range s.live {
		// What a checkpoint of a live session saved, that session holds.
		if o.Snapshot.SessionID == l.id || l.source != nil && o.Same(l.userID, *l.source, l.base) {
			return &holder{id: l.id, live: l, done: l.done}
		}
	}
	for other, c := range s.creating {
		if other != id && c.origin != nil && o.Same(c.origin.UserID, *c.origin.Source, c.origin.Snapshot.ID) {
			return &holder{id: other, done: c.done}
		}
	}
	return nil
}
