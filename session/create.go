package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/capacity"
	"github.com/stasisd/stasis/session/registry"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/rescue"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// repeatWindow is how long a repeated session_id with the same body returns the session
// that it made.
const repeatWindow = 24 * time.Hour

// Create makes a session. It resolves what to restore, waits for a slot, starts a Chrome
// and records the session. After an error nothing is left behind.
func (s *Service) Create(ctx context.Context, c access.Caller, r request.Create) (answer.Info, error) {
	if err := mayCreate(c, r); err != nil {
		return answer.Info{}, err
	}
	ctx, leave, err := s.deps.Keys.CallContext(ctx, c)
	if err != nil {
		return answer.Info{}, err
	}
	defer leave()
	info, err := s.create(ctx, c, r)
	return info, access.OrKeyDeleted(ctx, err)
}

// mayCreate checks that the caller may restore what the create names, or start an empty
// session.
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
	if err := s.deps.Node.Check(); err != nil {
		return answer.Info{}, err
	}
	if r.ReadOnly && r.Persist {
		return answer.Info{}, fault.New(fault.InvalidField, "session.create", "persist: a read_only session is never saved; set persist or read_only to false")
	}
	if r.ReadOnly && r.AutoSave != nil {
		return answer.Info{}, fault.New(fault.InvalidField, "session.create", "auto_save: a read_only session is never saved; leave auto_save out, or set read_only to false")
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
	ctx, release, err := nodeClaims{s}.claimID(ctx, c.KeyID, r.SessionID)
	if err != nil {
		return answer.Info{}, err
	}
	defer s.capacity.ReplenishLater()
	defer release()
	l, err := s.createOrShare(ctx, c, r, nil)
	if err := orLeaseLost(ctx, err); err != nil {
		return answer.Info{}, err
	}
	info, err := describe(context.WithoutCancel(ctx), c, l) // the session exists, even if the caller has gone
	info.Existing = l.id != r.SessionID
	return info, err
}

// describe describes a session to the caller that has created or resumed it. One that has already
// ended, as by a short limit, is described by its record, unless another node continues it.
func describe(ctx context.Context, c access.Caller, l *liveSession) (answer.Info, error) {
	info, err := l.Info(ctx)
	if !fault.Is(err, fault.SessionNotRunning) {
		info.Tickets = l.rights.Tickets(c)
		return info, err
	}
	rec, missing := l.svc.deps.Catalogue.Session(ctx, l.id)
	if missing != nil {
		return answer.Info{}, missing
	}
	if rec.Reason.Code == profiles.ReasonMoved {
		return answer.Info{}, err
	}
	return l.svc.inspector.Describe(ctx, rec)
}

// createOrShare makes a session for a claimed ID, or returns the live session to share.
// was is the record of an ended session that is resumed, else nil.
func (s *Service) createOrShare(ctx context.Context, c access.Caller, r request.Create, was *profiles.Session) (*liveSession, error) {
	wait, cancel := ctx, context.CancelFunc(func() {})
	if r.Wait > 0 {
		wait, cancel = context.WithTimeout(ctx, r.Wait)
	}
	defer cancel()
	o, shared, err := s.resolveSource(ctx, wait, c, r, was)
	if err != nil || shared != nil {
		return shared, err
	}
	claim, err := s.acquireSlot(ctx, wait, c, o.UserID, r, was)
	if err != nil {
		return nil, err
	}
	closed := func() {}
	if r.Connects() {
		if closed, err = s.reserveSocket(ctx, c, o.UserID); err != nil {
			s.capacity.ReleaseFor(claim)
			return nil, err
		}
	}
	l, err := s.createInSlot(ctx, c, r, o, was, claim)
	if err != nil {
		closed()
		s.capacity.ReleaseFor(claim)
		return nil, err
	}
	if r.Connects() {
		l.socket.reserve(c.KeyID, closed)
	}
	return l, nil
}

// createInSlot makes the session in its slot. If the create had to wait, the environment
// may have changed, so it is resolved again.
func (s *Service) createInSlot(ctx context.Context, c access.Caller, r request.Create, o restore.Environment, was *profiles.Session, claim capacity.Claim) (*liveSession, error) {
	if r.Wait > 0 {
		var err error
		if o, err = s.restorer.Resolve(ctx, c, r.SourceRequest()); err != nil {
			return nil, err
		}
	}
	o, release, err := s.holdSource(ctx, c, r, o)
	if err != nil {
		return nil, err
	}
	defer release() // from here on the session's record protects the snapshot
	return s.begin(ctx, c, r, o, was, claim)
}

// holdSource keeps the snapshot of a create from being removed. If the snapshot was
// removed since the environment was resolved, it resolves again.
func (s *Service) holdSource(ctx context.Context, c access.Caller, r request.Create, o restore.Environment) (_ restore.Environment, release func(), err error) {
	for o.Snapshot != nil {
		release, err := s.snapshots.Hold(ctx, *o.Snapshot, "restored")
		if !fault.Is(err, fault.SnapshotNotFound) {
			return o, release, err
		}
		if o, err = s.restorer.Resolve(ctx, c, r.SourceRequest()); err != nil {
			return o, nil, err
		}
	}
	return o, func() {}, nil
}

// repeated answers a create whose session_id exists. It returns that session if the same
// key sent the same body, else session_exists.
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
		return answer.Info{}, false, registry.IDTakenError()
	}
	if err := s.rescues.Await(ctx, rec.ID); err != nil {
		return answer.Info{}, false, err
	}
	info, err := s.inspector.Get(ctx, c, r.SessionID)
	info.Existing = true
	return info, true, err
}

// begin starts the Chrome and the session. was is the record of an ended session that is
// resumed, else nil. claim has the slot, which the session gives back at its end.
func (s *Service) begin(ctx context.Context, c access.Caller, r request.Create, o restore.Environment, was *profiles.Session, claim capacity.Claim) (*liveSession, error) {
	sealed, err := request.Seal(s.deps.Vault, r)
	if err != nil {
		return nil, err
	}
	if r.Engine, err = s.resolver.Engine(ctx, r, o.UserID, o.Engine()); err != nil {
		return nil, err
	}
	s.capacity.UseEngine(r.Engine)
	if was != nil && o.Snapshot != nil {
		// The snapshot already has what the first create selected and named, and more
		// since then.
		r.Origins, r.Extensions = state.Selection{}, nil
	}
	named, err := s.resolver.Extensions(ctx, c, o.UserID, r.Extensions)
	if err != nil {
		return nil, err
	}
	q := r.Restore(named)
	q.Owner = profiles.OwnerOf(o.UserID)
	if q.Egress, err = s.resolver.Egress(ctx, r, o.UserID); err != nil {
		return nil, err
	}
	if q.Limits, err = s.resolver.Limits(ctx, r, o.UserID); err != nil {
		return nil, err
	}
	up, err := s.restorer.Start(ctx, q, o)
	if err != nil {
		return nil, err
	}
	if err := s.left.fetch(ctx, was, up, q.Limits.Disk); err != nil {
		browsers.Discard(ctx, up.Chrome, s.deps.Log)
		return nil, err
	}
	now := s.deps.Now().UTC()
	s.countRestore(r, o, up.Report)
	if was != nil && was.Reason.Code == profiles.ReasonMoved { // its lifetime continues
		r.Lifetime = max(was.ExpiresAt.Sub(now), time.Second)
	}
	rec := profiles.Session{
		ID: r.SessionID, UserID: o.UserID, KeyID: c.KeyID, AgentName: r.AgentName, Goal: r.Goal,
		Engine: r.Engine, Status: profiles.StatusReady, CreatedAt: now, ExpiresAt: now.Add(r.Lifetime),
		Labels: r.Labels, RequestHash: r.RequestHash, RunDir: up.Chrome.Dir().Name(), BaseVersion: o.Version,
		Discard: r.DiscardOnEnd || r.ReadOnly, SealedRequest: sealed, WebhookURL: r.WebhookURL, NodeID: s.deps.Node.ID(),
	}
	if s.deps.TicketKey != nil {
		rec.TicketSalt = ticketSalt(was)
	}
	if up.Report != nil {
		rec.Restored, rec.BaseSnapshotID = profiles.JSON(up.Report), o.Snapshot.ID
		rec.FromDefault = up.Report.Source.Type == restore.SourceUserDefault
	}
	rec.Sealed, err = rescue.SealedState{Overrides: up.Overrides, Partial: up.Partial, Origins: r.Origins, Passkeys: r.Passkeys, RestoredAt: up.At}.Seal(s.deps.Vault)
	switch {
	case err != nil:
	case was == nil:
		rec.Counts = nodeClaims{s}.countOf(claim)
		err = s.records.Create(ctx, rec)
	default:
		rec, err = s.resumeRecord(ctx, rec, *was, r, up.Notes)
	}
	if err != nil {
		browsers.Discard(ctx, up.Chrome, s.deps.Log)
		return nil, err
	}
	l := newLiveSession(s, rec, r, q, up)
	l.claim = claim
	if s.deps.TicketKey != nil {
		l.rights.UseTickets(access.DeriveSessionTickets(s.deps.TicketKey, rec.ID, rec.TicketSalt))
	}
	if c.KeyID != rec.KeyID { // another key resumed it
		l.rights.MadeBy = append(l.rights.MadeBy, c.KeyID)
	}
	entry := registry.Entry[*liveSession]{ID: l.id, UserID: l.rights.UserID, SnapshotID: rec.BaseSnapshotID, Done: l.done, Session: l}
	if up.Report != nil {
		entry.Source = holding(was, up.Report.Source)
	}
	if err := s.sessions.Add(entry, func() { l.start(up) }); err != nil {
		browsers.Discard(ctx, up.Chrome, s.deps.Log)
		_ = s.saver.EndSession(context.WithoutCancel(ctx), profiles.End{SessionID: rec.ID,
			Status: profiles.StatusTerminated, Reason: profiles.ReasonShutdown.With("the daemon is shutting down"), EndedAt: s.deps.Now().UTC()}, false)
		return nil, err
	}
	if r.StartURL != "" {
		if err := up.Chrome.Open(ctx, r.StartURL); err != nil {
			s.deps.Log.Warn("cannot open start_url; the session starts without it", "session", rec.ID, "error", err)
		}
	}
	return l, nil
}

// acquireSlot takes a slot for a session of a user; see claim. If none is free, it makes a
// scheduled login check give way, which frees a slot.
func (s *Service) acquireSlot(ctx, wait context.Context, c access.Caller, userID string, r request.Create, was *profiles.Session) (capacity.Claim, error) {
	waits := r.WaitsForPlace()
	claim, err := s.claim(ctx, c, userID, !r.ReadOnly, was)
	if err != nil {
		return claim, err
	}
	err = s.capacity.AcquireFor(ctx, claim, false)
	if fault.Is(err, fault.TooManySessions) || waits && fault.Is(err, fault.QuotaExceeded) {
		if err := s.sessions.AwaitRenewal(ctx, nil); err != nil {
			return claim, err
		}
		err = s.capacity.AcquireFor(wait, claim, waits)
	}
	if err != nil {
		return claim, err
	}
	err = nodeClaims{s}.countOnNodes(ctx, r.SessionID, claim, was)
	if err == nil {
		err = s.recheckStored(ctx, claim)
	}
	if err != nil {
		s.capacity.ReleaseFor(claim)
		return claim, err
	}
	return claim, nil
}
