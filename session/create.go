package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/registry"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/rescue"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// repeatWindow is how long a repeated session_id with the same body is
// answered with the session that it made.
const repeatWindow = 24 * time.Hour

// Create makes a session: it resolves what to restore, waits for a place,
// brings a Chrome up and records it. On any error nothing is left behind.
func (s *Service) Create(ctx context.Context, c access.Caller, r request.Create) (answer.Info, error) {
	if err := mayCreate(c, r); err != nil {
		return answer.Info{}, err
	}
	ctx, leave, err := s.deps.Keys.While(ctx, c)
	if err != nil {
		return answer.Info{}, err
	}
	defer leave()
	info, err := s.create(ctx, c, r)
	return info, access.OrKeyDeleted(ctx, err)
}

// mayCreate checks that the caller may bring back what it names, or begin anew.
func mayCreate(c access.Caller, r request.Create) error {
	named := r.Resume || r.FromSession != "" || r.FromEnvironment != "" || r.FromDefaultOf != ""
	if named {
		if err := c.Require(access.Restore); err != nil || !r.FreshIfNone {
			return err
		}
	}
	return c.Require(access.Begin)
}

func (s *Service) create(ctx context.Context, c access.Caller, r request.Create) (answer.Info, error) {
	if r.ReadOnly && r.Persist {
		return answer.Info{}, fault.New(fault.InvalidField, "session.create", "persist: a read_only session is never saved, so persist must be false")
	}
	if r.ReadOnly && r.AutoSave != nil {
		return answer.Info{}, fault.New(fault.InvalidField, "session.create", "auto_save: a read_only session is never saved")
	}
	if r.Resume {
		info, found, err := s.resumed(ctx, c, r)
		if err != nil || found {
			return info, err
		}
	}
	if r.SessionID != "" {
		info, found, err := s.repeated(ctx, c, r)
		if err != nil || found {
			return info, err
		}
	} else {
		r.SessionID = profiles.NewID()
	}
	release, err := s.sessions.Claim(c.KeyID, r.SessionID)
	if err != nil {
		return answer.Info{}, err
	}
	defer s.capacity.Replenish() // not before: what it starts would slow this one down
	defer s.capacity.Pause()
	defer release()
	l, err := s.bring(ctx, c, r, nil)
	if err != nil {
		return answer.Info{}, err
	}
	info, err := l.Info(context.WithoutCancel(ctx)) // it is there, whoever has gone meanwhile
	info.Existing, info.Tickets = l.id != r.SessionID, l.rights.Tickets(c)
	return info, err
}

// bring makes a session that is claimed, or gives the one to share. was is its
// record where it lived before.
func (s *Service) bring(ctx context.Context, c access.Caller, r request.Create, was *profiles.Session) (*live, error) {
	wait, cancel := ctx, context.CancelFunc(func() {})
	if r.Wait > 0 {
		wait, cancel = context.WithTimeout(ctx, r.Wait)
	}
	defer cancel()
	o, shared, err := s.settle(ctx, wait, c, r)
	if err != nil || shared != nil {
		return shared, err
	}
	if err := s.takePlace(ctx, wait, r); err != nil {
		return nil, err
	}
	l, err := s.place(ctx, c, r, o, was)
	if err != nil {
		s.capacity.Release()
	}
	return l, err
}

// place begins the session in the place that it has. While it waited for one
// the environment may have moved on, so it is looked up anew.
func (s *Service) place(ctx context.Context, c access.Caller, r request.Create, o restore.Environment, was *profiles.Session) (*live, error) {
	if r.Wait > 0 {
		var err error
		if o, err = s.restorer.Resolve(ctx, c, r.Named()); err != nil {
			return nil, err
		}
	}
	o, release, err := s.holdSource(ctx, c, r, o)
	if err != nil {
		return nil, err
	}
	defer release() // from here on the session's record says that it is needed
	return s.begin(ctx, c, r, o, was)
}

// holdSource keeps what a create is to restore from being removed. Where that has
// happened since it was looked up, it is looked up anew.
func (s *Service) holdSource(ctx context.Context, c access.Caller, r request.Create, o restore.Environment) (_ restore.Environment, release func(), err error) {
	for o.Snapshot != nil {
		release, err := s.snapshots.Hold(ctx, *o.Snapshot, "restored")
		if !fault.Is(err, fault.SnapshotNotFound) {
			return o, release, err
		}
		if o, err = s.restorer.Resolve(ctx, c, r.Named()); err != nil {
			return o, nil, err
		}
	}
	return o, func() {}, nil
}

// repeated answers a session_id that is taken: with the session itself if the
// same key asked for it in the same words, else with session_exists.
func (s *Service) repeated(ctx context.Context, c access.Caller, r request.Create) (answer.Info, bool, error) {
	rec, err := s.deps.Catalogue.Session(ctx, r.SessionID)
	if fault.Is(err, fault.SessionNotFound) {
		return answer.Info{}, false, nil
	}
	if err != nil {
		return answer.Info{}, false, err
	}
	fresh := s.deps.Now().Sub(rec.CreatedAt) < repeatWindow
	if rec.KeyID != c.KeyID || rec.RequestHash != r.RequestHash || !fresh {
		return answer.Info{}, false, registry.Taken()
	}
	if err := s.rescues.Await(ctx, rec.ID); err != nil {
		return answer.Info{}, false, err
	}
	info, err := s.inspector.Get(ctx, c, r.SessionID)
	info.Existing = true
	return info, true, err
}

// begin brings the Chrome up and starts the session on it; was is the record of
// one that has ended and lives again.
func (s *Service) begin(ctx context.Context, c access.Caller, r request.Create, o restore.Environment, was *profiles.Session) (*live, error) {
	asked, err := request.Seal(s.deps.Vault, r)
	if err != nil {
		return nil, err
	}
	if r.Engine, err = s.resolver.Engine(ctx, r, o.UserID); err != nil {
		return nil, err
	}
	s.capacity.UseEngine(r.Engine)
	if was != nil && o.Snapshot != nil {
		// What its create selected and named has come already, and more since.
		r.Origins, r.Extensions = state.Selection{}, nil
	}
	named, err := s.resolver.Extensions(ctx, c, o.UserID, r.Extensions)
	if err != nil {
		return nil, err
	}
	up, err := s.restorer.Start(ctx, r.Restore(named), o)
	if err != nil {
		return nil, err
	}
	now := s.deps.Now().UTC()
	s.countRestore(r, o, up.Report)
	rec := profiles.Session{
		ID: r.SessionID, UserID: o.UserID, KeyID: c.KeyID, AgentName: r.AgentName, Goal: r.Goal,
		Engine: r.Engine, Status: profiles.StatusReady, CreatedAt: now, ExpiresAt: now.Add(r.Lifetime),
		Labels: r.Labels, RequestHash: r.RequestHash, RunDir: up.Chrome.Dir().Name(), BaseVersion: o.Version,
		Discard: r.DiscardOnEnd || r.ReadOnly, Asked: asked, WebhookURL: r.WebhookURL,
	}
	if up.Report != nil {
		rec.Restored, rec.BaseSnapshotID = profiles.JSON(up.Report), o.Snapshot.ID
	}
	rec.Sealed, err = rescue.Given{Overrides: up.Overrides, Partial: up.Partial, Origins: r.Origins, Passkeys: r.Passkeys, RestoredAt: up.At}.Seal(s.deps.Vault)
	switch {
	case err != nil:
	case was == nil:
		err = s.records.Create(ctx, rec)
	default:
		rec, err = s.records.Resume(ctx, rec, *was)
	}
	if err != nil {
		browsers.Discard(ctx, up.Chrome, s.deps.Log)
		return nil, err
	}
	l := newLive(s, rec, r, up)
	if c.KeyID != rec.KeyID { // it was resumed by another key
		l.rights.MadeBy = append(l.rights.MadeBy, c.KeyID)
	}
	entry := registry.Entry[*live]{ID: l.id, UserID: l.rights.UserID, SnapshotID: rec.BaseSnapshotID, Done: l.done, Session: l}
	if up.Report != nil {
		entry.Source = &up.Report.Source
	}
	if err := s.sessions.Add(entry, func() { l.start(up) }); err != nil {
		browsers.Discard(ctx, up.Chrome, s.deps.Log)
		_ = s.saver.EndSession(context.WithoutCancel(ctx), profiles.End{SessionID: rec.ID,
			Status: profiles.StatusTerminated, Reason: profiles.ReasonShutdown.With("the daemon is shutting down"), EndedAt: s.deps.Now().UTC()}, false)
		return nil, err
	}
	if r.StartURL != "" {
		if err := up.Chrome.Open(ctx, r.StartURL); err != nil {
			s.deps.Log.Warn("start_url could not be opened", "session", rec.ID, "error", err)
		}
	}
	return l, nil
}

// takePlace takes a place for a session. A scheduled check gives its place up
// rather than that a session finds none.
func (s *Service) takePlace(ctx, wait context.Context, r request.Create) error {
	err := s.capacity.Acquire(ctx, false)
	if !fault.Is(err, fault.TooManySessions) {
		return err
	}
	if err := s.sessions.AwaitRenewal(ctx, nil); err != nil {
		return err
	}
	return s.capacity.Acquire(wait, r.Wait > 0)
}
