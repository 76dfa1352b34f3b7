package session

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
)

// take continues a session that was ended as moved; paused, if it was. It does nothing if the
// session lives again already.
func (m *mover) take(ctx context.Context, id string) error {
	ctx = context.WithoutCancel(ctx) // what has begun is completed, whatever becomes of the other node
	rec, err := m.s.deps.Catalogue.Session(ctx, id)
	if err != nil || rec.EndedAt.IsZero() || rec.Reason.Code != profiles.ReasonMoved {
		return err
	}
	c, err := m.callerOf(ctx, rec.KeyID)
	if err != nil {
		return err
	}
	_, _, err = m.s.resume(ctx, c, request.Create{SessionID: id})
	if err != nil {
		return err
	}
	var was save.Moved
	if json.Unmarshal(rec.Outcome, &was) == nil && was.Paused {
		if _, err := m.s.Pause(ctx, c, id); err != nil {
			m.s.deps.Log.Warn("a session that was moved could not be paused again; it continues", "session", id, "error", err)
		}
	}
	return nil
}

// dropFiles removes the files of sessions that live again, or that nobody continues any more. It
// leaves those of sessions that are being ended as moved, which still live in the directory.
func (m *mover) dropFiles(ctx context.Context) {
	for _, id := range m.s.left.ids() {
		rec, err := m.s.deps.Catalogue.Session(ctx, id)
		again := rec.EndedAt.IsZero() && !m.s.left.isDir(id, rec.RunDir)
		over := !rec.EndedAt.IsZero() && rec.Reason.Code != profiles.ReasonMoved
		if err == nil && (again || over) || fault.Is(err, fault.SessionNotFound) {
			m.s.left.drop(id)
		}
	}
}

// keepsFiles no longer keeps the directory of a session that could not be ended as moved. It lives in
// that directory.
func (m *mover) keepsFiles(ctx context.Context, id string) {
	if rec, err := m.s.deps.Catalogue.Session(ctx, id); err == nil && rec.EndedAt.IsZero() {
		m.s.left.drop(id)
	}
}

// takeEach continues sessions that other nodes have ended as moved, and that nobody continues
// yet: their node has died, or found no other. It tries as many as there is room for.
func (m *mover) takeEach(ctx context.Context, moving []profiles.Session) {
	maps.DeleteFunc(m.failed, func(id string, _ time.Time) bool {
		return !slices.ContainsFunc(moving, func(rec profiles.Session) bool { return rec.ID == id })
	})
	rand.Shuffle(len(moving), func(i, j int) { moving[i], moving[j] = moving[j], moving[i] })
	for _, rec := range moving {
		now := m.s.deps.Now()
		switch {
		case ctx.Err() != nil:
			return
		case now.Sub(rec.EndedAt) > moveTime:
			m.giveUp(ctx, rec)
			continue
		case m.s.capacity.Free() == 0 || now.Sub(m.failed[rec.ID]) < movePause:
			continue
		}
		err := m.take(ctx, rec.ID)
		switch fault.CodeOf(err) {
		case "":
			delete(m.failed, rec.ID)
			m.s.deps.Log.Info("this node continues a session of another one, which has ended it as moved", "session", rec.ID, "node", rec.NodeID)
		case fault.RequestInProgress, fault.TooManySessions:
		default:
			m.failed[rec.ID] = now
			m.s.deps.Log.Warn("this node cannot continue a session that another one has ended as moved; trying again", "session", rec.ID, "node", rec.NodeID, "error", err)
		}
	}
}

// giveUp records that no node has continued a session. It can still be resumed.
func (m *mover) giveUp(ctx context.Context, rec profiles.Session) {
	ctx, release, err := nodeClaims{m.s}.claimID(ctx, rec.KeyID, rec.ID) // the claim of its node becomes this one's
	if err != nil {
		return // another node continues it at last
	}
	defer release()
	id := rec.ID
	_, err = m.s.deps.Catalogue.UpdateSession(ctx, id, func(s *profiles.Session) error {
		if !s.EndedAt.IsZero() && s.Reason.Code == profiles.ReasonMoved {
			s.Reason = profiles.ReasonNotMoved.With("its node was drained or stopped, and no other could continue it; resume it")
			s.Notices = m.s.deps.Notices.Of(*s, events.EndEvents(false)...)
		}
		return nil
	})
	if err != nil {
		m.s.deps.Log.Warn("a session that no node continues could not be recorded as ended; trying again", "session", id, "error", err)
		return
	}
	m.s.deps.Notices.Wake()
}

// callerOf returns the caller that a key of a session's record stands for. The key could create
// the session, so it can continue it.
func (m *mover) callerOf(ctx context.Context, keyID string) (access.Caller, error) {
	c, err := m.s.deps.Keys.Caller(ctx, keyID)
	c.Rights = append(c.Rights, access.RightRestore)
	return c, err
}
