package session

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/rescue"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
)

// record is a session's record, if the caller may look at it, or drive it.
func (s *Service) record(ctx context.Context, c access.Caller, id string, p access.Permission) (profiles.Session, error) {
	if err := c.MayAsk(p); err != nil {
		return profiles.Session{}, err
	}
	rec, err := s.deps.Catalogue.Session(ctx, id)
	if err != nil {
		return rec, err
	}
	by := []string{rec.KeyID}
	if l := s.sessions.Find(id); l != nil {
		by = l.madeBy
	}
	return rec, c.OnSession(id, rec.UserID, by, p)
}

// running is a live session, if the caller may look at it, or drive it. One that
// has ended is session_not_running.
func (s *Service) running(ctx context.Context, c access.Caller, id string, p access.Permission) (*live, error) {
	if l := s.sessions.Find(id); l != nil && l.allow(c, p) == nil {
		return l, nil
	}
	if _, err := s.record(ctx, c, id, p); err != nil {
		return nil, err
	}
	if s.rescues.Has(id) {
		return nil, fault.New(fault.SessionEnding, "session.find", "session %s has failed (%s), and what it left is being rescued", id, rescue.Killed)
	}
	return nil, notRunning(id)
}

// Get tells of a session, running or ended.
func (s *Service) Get(ctx context.Context, c access.Caller, id string) (answer.Info, error) {
	rec, err := s.record(ctx, c, id, access.Look)
	if err != nil {
		return answer.Info{}, err
	}
	return s.infoFor(ctx, c, rec)
}

// infoFor tells a caller of a session, with the tickets that its key may have.
func (s *Service) infoFor(ctx context.Context, c access.Caller, rec profiles.Session) (answer.Info, error) {
	info, err := s.infoOf(ctx, rec)
	if l := s.sessions.Find(rec.ID); l != nil && err == nil {
		info.Tickets = l.ticketsFor(c)
	}
	return info, err
}

// infoOf tells of a session by its record, or by itself while it lives.
func (s *Service) infoOf(ctx context.Context, rec profiles.Session) (answer.Info, error) {
	if l := s.sessions.Find(rec.ID); l != nil {
		info, err := l.info(ctx)
		if !fault.Is(err, fault.SessionNotRunning) {
			return info, err
		}
		// It ended between the two looks.
		if rec, err = s.deps.Catalogue.Session(ctx, rec.ID); err != nil {
			return answer.Info{}, err
		}
	}
	rescuing := s.rescues.Has(rec.ID)
	if !rescuing && rec.Reason.Code == profiles.ReasonBeingRescued {
		var err error // its rescue ended between the two looks
		if rec, err = s.deps.Catalogue.Session(ctx, rec.ID); err != nil {
			return answer.Info{}, err
		}
	}
	info := answer.Info{Session: rec, Rescuing: rescuing && rec.EndedAt.IsZero()}
	if rec.Restored != nil {
		info.Restored = new(restore.Report)
		if err := json.Unmarshal(rec.Restored, info.Restored); err != nil {
			return info, fault.Wrap(err, fault.StoreFailed, "session.get", "the recorded restore report cannot be read")
		}
	}
	return info, nil
}

// List gives a page of sessions, newest first, and the cursor of the next.
func (s *Service) List(ctx context.Context, c access.Caller, r request.List) ([]answer.Info, string, error) {
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
	records, next, err := s.deps.Catalogue.Sessions(ctx, profiles.SessionFilter{
		UserID: userID, Status: profiles.Status(r.Status), Limit: r.Limit, StartAfter: r.StartAfter})
	if err != nil {
		return nil, "", err
	}
	page := make([]answer.Info, 0, len(records))
	for _, rec := range records {
		info, err := s.infoFor(ctx, c, rec)
		if err != nil {
			return nil, "", err
		}
		page = append(page, info)
	}
	return page, next, nil
}

// RestoreReport tells what a restore brought back, whole; a fresh session has
// none.
func (s *Service) RestoreReport(ctx context.Context, c access.Caller, id string) (restore.Report, error) {
	info, err := s.Get(ctx, c, id)
	if err != nil {
		return restore.Report{}, err
	}
	if info.Restored == nil {
		return restore.Report{}, fault.New(fault.NotFound, "session.report", "session %s was not restored from anything", id)
	}
	return *info.Restored, nil
}

// Status tells how a session is.
func (s *Service) Status(ctx context.Context, c access.Caller, id string) (agent.Status, error) {
	info, err := s.Get(ctx, c, id)
	if err != nil {
		return agent.Status{}, err
	}
	return agent.StatusOf(info.Session), nil
}

// endEach ends sessions side by side, as many at once as the daemon saves.
func (s *Service) endEach(ctx context.Context, c access.Caller, ids []string, r request.End) (save.EndAnswer, error) {
	total := save.EndAnswer{Success: true, Message: "there is no running session"}
	gate := make(chan struct{}, max(s.cfg.Savers, 1))
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		first error
		n     int
	)
	for _, id := range ids {
		group.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			a, err := s.End(ctx, c, id, r)
			mu.Lock()
			defer mu.Unlock()
			if err != nil && first == nil {
				first = err
			}
			if err == nil && a.Deleted {
				n++
				total.UnsavedChanges = total.UnsavedChanges || a.UnsavedChanges
			}
		})
	}
	group.Wait()
	if n > 0 {
		total.Deleted = true
		total.Message = plural(n) + " ended"
	}
	return total, first
}

func plural(n int) string {
	if n == 1 {
		return "1 session"
	}
	return strconv.Itoa(n) + " sessions"
}

// AuthorizeTicket returns whom a session's ticket stands for: its key, as it is
// now. A ticket for another purpose or session is unauthorized, and so is one of a
// session that has ended or a key that was deleted. Who comes with a ticket to look
// has no other right.
func (s *Service) AuthorizeTicket(ctx context.Context, ticket, sessionID string, p access.Purpose) (access.Caller, error) {
	refused := fault.New(fault.Unauthorized, "session.ticket", "the ticket is not for this, or its session has ended, or its key was deleted")
	l := s.sessions.Find(sessionID)
	if l == nil {
		return access.Caller{}, refused
	}
	keyID, needs, ok := l.tickets.Key(ticket, p)
	if !ok {
		return access.Caller{}, refused
	}
	c, err := s.deps.Keys.Caller(ctx, keyID)
	switch {
	case fault.Is(err, fault.Unauthorized), err == nil && l.allow(c, needs) != nil:
		return access.Caller{}, refused
	case err != nil:
		return access.Caller{}, err
	case p == access.PurposeView:
		c = access.Caller{KeyID: c.KeyID, UserID: l.userID, Rights: []access.Right{access.RightView}}
	}
	return c, nil
}

// ticketsFor are the tickets that a caller may have of a session.
func (l *live) ticketsFor(c access.Caller) map[access.Purpose]string {
	return l.tickets.MakeAll(c.KeyID, func(p access.Permission) error { return l.allow(c, p) })
}

// allow is [access.Caller.OnSession] of a session that lives.
func (l *live) allow(c access.Caller, p access.Permission) error {
	return c.OnSession(l.id, l.userID, l.madeBy, p)
}
