package session

import (
	"context"
	"errors"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/records"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
)

// Resume continues a session. A paused session is thawed. If Chrome could not be reopened
// after a failed save, that is tried again. An ended session becomes live again with the
// same ID, from its newest snapshot or from what a scheduled login check renewed of it. With
// a snapshotID it goes back to that older snapshot of the session, and to the conversation
// and the notes of that time.
func (s *Service) Resume(ctx context.Context, c access.Caller, id, snapshotID string) (answer.Acknowledgement, error) {
	a, _, err := s.resume(ctx, c, request.Create{SessionID: id}.GoingBackTo(snapshotID))
	return a, err
}

// resume is Resume, also for a create with resume. r has the ID, and says what to do if
// nothing was saved.
func (s *Service) resume(ctx context.Context, c access.Caller, r request.Create) (answer.Acknowledgement, *liveSession, error) {
	for {
		rec, err := s.resumable(ctx, c, r.SessionID)
		if err != nil {
			return answer.Acknowledgement{}, nil, err
		}
		changed, err := request.Changes(s.deps.Vault, rec, r)
		if err != nil {
			return answer.Acknowledgement{}, nil, err
		}
		if err := s.rescues.Await(ctx, rec.ID); err != nil {
			return answer.Acknowledgement{}, nil, err
		}
		l := s.sessions.Find(rec.ID)
		if l == nil {
			l, undone, err := s.resumeEnded(ctx, c, rec.ID, r)
			if errors.Is(err, records.ErrSaved) {
				continue
			}
			if l != nil || err != nil {
				return answer.Acknowledgement{Success: true, Status: "resumed", Message: resumedFrom(r, undone)}, l, err
			}
			continue // another request has resumed it meanwhile
		}
		if err := l.rights.Allow(c, access.Drive); err != nil {
			return answer.Acknowledgement{}, nil, err
		}
		if err := mayContinue(rec.ID, changed, r); err != nil {
			return answer.Acknowledgement{}, nil, err
		}
		a, err := l.resume(ctx)
		if fault.Is(err, fault.SessionNotRunning) && s.sessions.Find(rec.ID) != l {
			continue // it ended after Find
		}
		return a, l, err
	}
}

// mayContinue returns an error for a resume of a live session that asks for what only an
// ended one can get: other options, or an older snapshot.
func mayContinue(id string, changed []string, r request.Create) error {
	switch {
	case r.GoesBack():
		return fault.New(fault.EnvironmentInUse, "session.resume", "snapshot_id: session %s is live; end it first", id)
	case len(changed) > 0:
		return fault.New(fault.InvalidField, "session.resume", "%s: cannot change while the session is live; end it first, or leave it out", changed[0])
	}
	return nil
}

func resumedFrom(r request.Create, undone bool) string {
	switch {
	case r.GoesBack():
		return "the session was taken back to an older snapshot, with its conversation"
	case undone:
		return "the session had ended without a save; it was saved now and continues"
	}
	return "the session was restored from its last snapshot"
}

// resumable returns the record of a session that the caller may look at, or may restore.
// A key that may restore from a session may also resume it.
func (s *Service) resumable(ctx context.Context, c access.Caller, id string) (profiles.Session, error) {
	if !c.May(access.Restore) {
		return s.inspector.Record(ctx, c, id, access.Look)
	}
	rec, err := s.deps.Catalogue.Session(ctx, id)
	if err == nil && !c.MayActFor(rec.UserID) {
		err = access.NoSession(id)
	}
	return rec, err
}

// resume continues a live session.
func (l *liveSession) resume(ctx context.Context) (answer.Acknowledgement, error) {
	a := answer.Acknowledgement{Success: true, Status: "resumed", Message: "the session continues"}
	l.awaitCrash(ctx)
	running := false
	err := l.askAndWait(ctx, func(reply func(error)) {
		switch {
		case l.ending != nil:
			reply(l.usable())
		case l.reopening != nil:
			l.reopening.waiters = append(l.reopening.waiters, reply)
		case l.chrome == nil:
			l.reopen(reply)
		case !l.paused:
			running = true
			l.recordQueue.After(func() { reply(nil) }) // wait until its status is recorded
		default:
			l.unpause(reply)
		}
	})
	if err == nil && running {
		a.Status, a.Message = "already_running", "the session is already running"
	}
	l.svc.deps.Journal.Flush(ctx, l.id)
	return a, err
}

// unpause thaws a paused session and records its new status.
func (l *liveSession) unpause(end func(error)) {
	l.thaw(func(err error) {
		if err == nil { // an ending may have begun
			err = l.usable() // an ending has begun
		}
		switch {
		case err != nil:
			end(err)
			return
		case !l.paused: // another request has resumed it first
			l.recordQueue.After(func() { end(nil) })
			return
		}
		l.paused = false
		status := profiles.StatusReady
		if l.used {
			status = profiles.StatusRunning
		}
		l.setStatus(status, profiles.Reason{})
		l.runs.Record(events.Resumed, nil)
		l.touch()
		l.recordQueue.After(func() { end(nil) })
	})
}

// resumeEnded makes an ended session live again, with the options it was created with. It
// returns nil if the session is live again already. undone reports that the session was
// discarded at its end, and has been saved now.
func (s *Service) resumeEnded(ctx context.Context, c access.Caller, id string, by request.Create) (_ *liveSession, undone bool, err error) {
	if err := c.Require(access.Restore); err != nil {
		return nil, false, err
	}
	ctx, release, err := nodeClaims{s}.claimID(ctx, c.KeyID, id)
	if err != nil {
		if code := fault.CodeOf(err); code != fault.SessionExists && code != fault.RequestInProgress {
			return nil, false, err
		}
		return nil, false, fault.Wrap(err, fault.RequestInProgress, "session.resume", "session "+id+" is being created, saved or resumed by another request; try again")
	}
	defer s.capacity.ReplenishLater()
	defer release()
	rec, err := s.resumable(ctx, c, id)
	if err != nil || s.sessions.Find(id) != nil {
		return nil, false, err
	}
	if !rec.EndedAt.IsZero() {
		if _, undone, err = s.undoDiscard(context.WithoutCancel(ctx), rec, request.End{}, func() {}); err != nil {
			return nil, false, fault.Wrap(err, fault.CodeOf(err), "session.resume",
				"the session had ended without a save, and saving it now failed; it is still kept, so try again: "+fault.MessageOf(err))
		}
	}
	if rec.EndedAt.IsZero() {
		return nil, false, fault.New(fault.SessionEnding, "session.resume", "session %s is being ended", id)
	}
	options, err := request.Resumed(s.deps.Vault, rec, by)
	if err != nil {
		return nil, false, err
	}
	if options.OnLive == request.OnLiveShare { // this session itself is requested
		options.OnLive = request.OnLiveFail
	}
	if rec.Reason.Code == profiles.ReasonMoved {
		options = options.Moved()
	}
	l, err := s.createOrShare(ctx, c, options, &rec)
	if err = orLeaseLost(ctx, err); fault.Is(err, fault.NodeLost) {
		return nil, undone, err
	}
	if fault.Is(err, fault.NoSnapshot) && rec.BaseSnapshotID == "" {
		err = fault.New(fault.NoSnapshot, "session.resume",
			"session %s was never saved; to start it empty with the same ID, create it with this session_id, resume: true and if_missing: fresh", id)
	}
	return l, undone, err
}

// resumeRecord records that an ended session is live again. If it goes back to an older
// snapshot, its notes are those of the snapshot; nil: none.
func (s *Service) resumeRecord(ctx context.Context, rec, was profiles.Session, r request.Create, notes *restore.Notes) (profiles.Session, error) {
	if r.GoesBack() { // first, because a live session needs its goroutine
		if err := agent.TakeBack(ctx, s.deps.Catalogue, rec, notes, s.deps.Now()); err != nil {
			return rec, err
		}
	}
	return s.records.Resume(ctx, rec, was, r.GoesBack())
}

// resumed answers a create with resume. found is false if there is nothing to resume and
// the create may make a fresh session.
func (s *Service) resumed(ctx context.Context, c access.Caller, r request.Create) (_ answer.Info, found bool, err error) {
	a, l, err := s.resume(ctx, c, r)
	if fault.Is(err, fault.SessionNotFound) && r.FreshIfNone {
		return answer.Info{}, false, nil
	}
	if err != nil {
		return answer.Info{}, false, err
	}
	info, err := describe(context.WithoutCancel(ctx), c, l)
	info.Existing = a.Status == "already_running"
	return info, true, err
}
