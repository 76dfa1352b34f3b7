// Package inspect finds live and ended sessions and describes them to callers that may
// look at them.
package inspect

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
)

// Records looks up the records of sessions; see [profiles.SessionStore].
type Records interface {
	Session(ctx context.Context, id string) (profiles.Session, error)
	Sessions(ctx context.Context, f profiles.SessionFilter) (page []profiles.Session, next string, err error)
}

// Live is a live session.
type Live interface {
	Rights() *access.LiveSession
	// Info describes the session as it is now, without tickets. It returns
	// session_not_running if the session has ended meanwhile.
	Info(ctx context.Context) (answer.Info, error)
	// Measure begins to measure the memory of the session's Chrome, unless that was done
	// just now. ended is closed when Info has the result.
	Measure(ctx context.Context) (ended <-chan struct{})
}

// Sessions finds live sessions, and those that a killed daemon left.
type Sessions interface {
	// Find returns the live session with an ID, or nil.
	Find(id string) Live
	// Rescuing reports whether the data that a killed daemon left of a session is being
	// saved.
	Rescuing(id string) bool
	// UndoUntil returns until when a session that ended without a save can still be saved;
	// ok is false if it cannot.
	UndoUntil(id string) (_ time.Time, ok bool)
}

// Inspector describes sessions. Its methods are safe for concurrent use. They return
// session_not_found for a session that the caller may not look at.
type Inspector struct {
	records  Records
	sessions Sessions
}

// New makes an Inspector.
func New(records Records, sessions Sessions) *Inspector { return &Inspector{records, sessions} }

// Record returns a session's record if the caller has the permission for the session.
func (i *Inspector) Record(ctx context.Context, c access.Caller, id string, p access.Permission) (profiles.Session, error) {
	if err := c.RequireForAny(p); err != nil {
		return profiles.Session{}, err
	}
	rec, err := i.records.Session(ctx, id)
	if err != nil {
		return rec, err
	}
	by := []string{rec.KeyID}
	if l := i.sessions.Find(id); l != nil {
		by = l.Rights().MadeBy
	}
	return rec, c.OnSession(id, rec.UserID, by, p)
}

// Get describes a live or ended session.
func (i *Inspector) Get(ctx context.Context, c access.Caller, id string) (answer.Info, error) {
	rec, err := i.Record(ctx, c, id, access.Look)
	if err != nil {
		return answer.Info{}, err
	}
	return i.infoFor(ctx, c, rec)
}

// patience is how long [Inspector.Examine] waits for a measurement.
const patience = time.Second

// Examine is Get with a new measurement of the session's memory, unless there is a recent
// one. On a busy machine the measurement may be an older one, or missing.
func (i *Inspector) Examine(ctx context.Context, c access.Caller, id string) (answer.Info, error) {
	if _, err := i.Record(ctx, c, id, access.Look); err != nil {
		return answer.Info{}, err
	}
	if l := i.sessions.Find(id); l != nil {
		wait, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		select {
		case <-l.Measure(wait):
		case <-wait.Done():
		}
	}
	return i.Get(ctx, c, id) // the session may have ended meanwhile
}

// infoFor describes a session with the tickets that the caller's key may have.
func (i *Inspector) infoFor(ctx context.Context, c access.Caller, rec profiles.Session) (answer.Info, error) {
	info, err := i.Describe(ctx, rec)
	if l := i.sessions.Find(rec.ID); l != nil && err == nil {
		info.Tickets = l.Rights().Tickets(c)
	}
	return info, err
}

// Describe describes a session to a caller that may look at it: a live one by itself, an ended one
// by its record.
func (i *Inspector) Describe(ctx context.Context, rec profiles.Session) (answer.Info, error) {
	if l := i.sessions.Find(rec.ID); l != nil {
		info, err := l.Info(ctx)
		if !fault.Is(err, fault.SessionNotRunning) {
			return info, err
		}
		// It ended after Find.
		if rec, err = i.records.Session(ctx, rec.ID); err != nil {
			return answer.Info{}, err
		}
	}
	rescuing := i.sessions.Rescuing(rec.ID)
	if !rescuing && rec.Reason.Code == profiles.ReasonBeingRescued {
		var err error // its rescue ended after the record was read
		if rec, err = i.records.Session(ctx, rec.ID); err != nil {
			return answer.Info{}, err
		}
	}
	info := answer.Info{Session: rec, Rescuing: rescuing && rec.EndedAt.IsZero()}
	if until, ok := i.sessions.UndoUntil(rec.ID); ok {
		info.UndoUntil = &until
	}
	if rec.Restored != nil {
		info.Restored = new(restore.Report)
		if err := json.Unmarshal(rec.Restored, info.Restored); err != nil {
			return info, fault.Wrap(err, fault.StoreFailed, "session.get", "cannot read the recorded restore report")
		}
	}
	return info, nil
}

// List returns a page of sessions, newest first, and the cursor of the next page. It has the
// last known memory of each live session, and begins to measure it again if that is old.
func (i *Inspector) List(ctx context.Context, c access.Caller, r request.List) ([]answer.Info, string, error) {
	if err := c.Require(access.Look); err != nil {
		return nil, "", err
	}
	userID := r.UserID
	if userID == "" && !c.ForEveryUser() {
		userID = c.UserID
	}
	if userID != "" && !c.MayActFor(userID) {
		return []answer.Info{}, "", nil
	}
	records, next, err := i.records.Sessions(ctx, profiles.SessionFilter{
		UserID: userID, Status: profiles.Status(r.Status), Limit: r.Limit, StartAfter: r.StartAfter})
	if err != nil {
		return nil, "", err
	}
	page := make([]answer.Info, 0, len(records))
	for _, rec := range records {
		info, err := i.infoFor(ctx, c, rec)
		if err != nil {
			return nil, "", err
		}
		if l := i.sessions.Find(rec.ID); l != nil {
			l.Measure(ctx) // for later calls
		}
		page = append(page, info)
	}
	return page, next, nil
}

// Here describes sessions for the list of another node, which has found that they live on this one.
// It leaves out those that the caller may not look at.
func (i *Inspector) Here(ctx context.Context, c access.Caller, ids []string) ([]answer.Info, error) {
	if err := c.Require(access.Look); err != nil {
		return nil, err
	}
	found := make([]answer.Info, 0, len(ids))
	for _, id := range ids {
		info, err := i.here(ctx, c, id)
		if fault.Is(err, fault.SessionNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, info)
	}
	return found, nil
}

// here is Get for a list. It does not read the record of a live session.
func (i *Inspector) here(ctx context.Context, c access.Caller, id string) (answer.Info, error) {
	l := i.sessions.Find(id)
	if l == nil {
		return i.Get(ctx, c, id) // it has ended just now, or is being rescued
	}
	if err := l.Rights().Allow(c, access.Look); err != nil {
		return answer.Info{}, err
	}
	info, err := l.Info(ctx)
	if fault.Is(err, fault.SessionNotRunning) {
		return i.Get(ctx, c, id)
	}
	info.Tickets = l.Rights().Tickets(c)
	l.Measure(ctx) // for later calls
	return info, err
}

// RestoreReport returns the whole restore report. It returns
// not_found for a session that was not restored.
func (i *Inspector) RestoreReport(ctx context.Context, c access.Caller, id string) (restore.Report, error) {
	info, err := i.Get(ctx, c, id)
	if err != nil {
		return restore.Report{}, err
	}
	if info.Restored == nil {
		return restore.Report{}, fault.New(fault.NotFound, "session.report", "session %s was not restored; it started empty", id)
	}
	return *info.Restored, nil
}

// Status describes a session's status for agents.
func (i *Inspector) Status(ctx context.Context, c access.Caller, id string) (agent.Status, error) {
	info, err := i.Get(ctx, c, id)
	if err != nil {
		return agent.Status{}, err
	}
	return agent.StatusOf(info.Session, info.HasAgent), nil
}
