package rescue

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/save"
)

// RescuedLabel is the label of a session that a late rescue makes. Its value is the session that
// was taken over.
const RescuedLabel = "rescued_from"

// texts of late rescues
const (
	late  = "the node on which the session lived died, or lost its lease; what it had was saved when it was back"
	aside = "what a node had of session "
	gone  = Killed + "; the node has started again without the session's user data directory"
)

// missingFor is how long a node remembers what it may have of a session and does not find. Its
// data directory may be back, for example if it was given another one by mistake.
const missingFor = 24 * time.Hour

// errTakenOver says that another node has ended a session, or has made it live again.
var errTakenOver = fault.New(fault.NodeLost, "session.rescue", "another node has taken the session over")

// holds reports whether a session still is as this node left it: no other has taken it over.
func (r *Rescues) holds(now, rec profiles.Session) bool {
	return now.RunDir == rec.RunDir && (r.own(now) || now.NodeID == "") && now.Reason.Code != profiles.ReasonNodeLost
}

// checkHeld returns the check of a rescue's commit; nil if the daemon is no node.
func (r *Rescues) checkHeld(rec profiles.Session) func(profiles.Session) error {
	if r.cfg.NodeID == "" {
		return nil
	}
	return func(now profiles.Session) error {
		if !r.holds(now, rec) {
			return errTakenOver
		}
		return nil
	}
}

// registerLeft registers what this node has of sessions that were taken over while it was away,
// and removes these directories from dirs.
func (r *Rescues) registerLeft(ctx context.Context, dirs map[string]*browser.Dir) error {
	if r.cfg.NodeID == "" {
		return nil
	}
	all, err := r.cfg.Left.LeftSessions(ctx, r.cfg.NodeID)
	if err != nil {
		return err
	}
	for _, l := range all {
		dir := dirs[l.RunDir]
		if dir == nil && r.cfg.Now().Sub(l.EndedAt) < missingFor {
			continue
		}
		if dir == nil {
			if err := r.cfg.Left.ForgetLeft(ctx, r.cfg.NodeID, l.RunDir); err != nil {
				return err
			}
			continue
		}
		rec, err := r.cfg.Records.Session(ctx, l.SessionID)
		if err != nil {
			return err
		}
		rec.RunDir = l.RunDir
		r.Add(rec, dir)
		delete(dirs, l.RunDir)
	}
	return nil
}

// endMissing ends a session of this node whose user data directory is missing, as a takeover does.
// A daemon with the same ID may have lost its lease, and still have the directory.
func (r *Rescues) endMissing(ctx context.Context, rec profiles.Session) error {
	now := r.cfg.Now().UTC()
	if err := r.cfg.Left.AddLeft(ctx, profiles.LeftSession{NodeID: r.cfg.NodeID, RunDir: rec.RunDir, SessionID: rec.ID, EndedAt: now, Sealed: rec.Sealed}); err != nil {
		return err
	}
	r.cfg.Log.Error("the user data directory of a session is missing; its last stored snapshot stays", "session", rec.ID)
	if err := r.cfg.Saver.EndSession(ctx, profiles.End{SessionID: rec.ID, Status: profiles.StatusError,
		Reason: profiles.ReasonNodeLost.With(gone), EndedAt: now, Check: r.checkHeld(rec)}, true); err != nil {
		return err
	}
	r.cfg.Ended(rec, "", errMissing)
	return nil
}

// rescueLate saves what this node has of a session that another one has taken over, as a rescue
// snapshot. If the session is still as the takeover left it, the snapshot is its newest, and a
// resume continues with it. Otherwise the session has gone on without it, and the snapshot is
// that of an own, ended session: it never stands in for what came later.
func (r *Rescues) rescueLate(ctx context.Context, rec profiles.Session, dir *browser.Dir) error {
	all, err := r.cfg.Left.LeftSessions(ctx, r.cfg.NodeID)
	if err != nil {
		return err
	}
	var left profiles.LeftSession
	for _, l := range all {
		if l.RunDir == rec.RunDir {
			left = l
		}
	}
	now, err := r.cfg.Records.Session(ctx, rec.ID)
	if err != nil {
		return err
	}
	if left.SessionID != "" && dir != nil && browser.HasProfile(dir) && !now.Discard {
		if err := r.saveLate(ctx, now, left, dir); err != nil {
			return err
		}
	}
	if dir == nil {
		return nil // another daemon with this ID may have it; see registerLeft
	}
	browsers.Remove(dir, r.cfg.Log)
	return r.cfg.Left.ForgetLeft(ctx, r.cfg.NodeID, rec.RunDir)
}

// saveLate saves a profile of a session that was taken over. An error means that it can be tried
// again.
func (r *Rescues) saveLate(ctx context.Context, now profiles.Session, left profiles.LeftSession, dir *browser.Dir) error {
	now.Sealed = left.Sealed
	j := r.restoreSealed(save.Job{Session: now, Dir: dir, Dead: true, Rescue: true, AfterEnd: true, Mode: save.Filesystem,
		Status: now.Status, Reason: profiles.ReasonNodeLost.With(late), Check: func(s profiles.Session) error {
			if !untouched(s, left) {
				return errTakenOver
			}
			return nil
		}})
	var e save.EndResult
	if e.Err = errTakenOver; untouched(now, left) {
		e = r.cfg.Saver.Rescue(ctx, j)
	}
	if errors.Is(e.Err, errTakenOver) {
		j.Session, j.Import, j.AfterEnd, j.Check = r.ownSession(now, left), &save.Import{}, false, nil
		e = r.cfg.Saver.Rescue(ctx, j)
	}
	switch code := fault.CodeOf(e.Err); {
	case e.Err == nil:
		r.cfg.Log.Info("what this node had of a session that was taken over was saved", "session", now.ID, "snapshot", e.Answer.Snapshot.ID, "in_session", j.Session.ID)
		r.cfg.Ended(j.Session, e.Answer.Snapshot.ID, nil)
		return nil
	case ctx.Err() == nil && code == fault.SaveFailed:
		r.cfg.Log.Error("what this node had of a session that was taken over could not be saved, and is lost; its stored snapshots stay", "session", now.ID, "error", e.Err)
		return nil
	default:
		return e.Err
	}
}

// untouched reports whether a session is as the takeover left it.
func untouched(now profiles.Session, left profiles.LeftSession) bool {
	return now.Reason.Code == profiles.ReasonNodeLost && now.EndedAt.Equal(left.EndedAt) && now.RunDir == left.RunDir && now.Outcome == nil
}

// ownSession returns the record of a session for the snapshot of one that has gone on without it.
func (r *Rescues) ownSession(of profiles.Session, left profiles.LeftSession) profiles.Session {
	labels := maps.Clone(of.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[RescuedLabel] = of.ID
	return profiles.Session{ID: profiles.NewID(), UserID: of.UserID, KeyID: of.KeyID, AgentName: of.AgentName, Goal: of.Goal, Engine: of.Engine,
		Status: profiles.StatusTerminated, Reason: profiles.ReasonNodeLost.With(aside + of.ID), CreatedAt: left.EndedAt, ExpiresAt: left.EndedAt, EndedAt: left.EndedAt,
		Labels: labels, WebhookURL: of.WebhookURL, NodeID: left.NodeID}
}
