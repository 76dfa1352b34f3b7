// Package records writes the changes of a session to its record in the catalogue:
// created, resumed, another status, a restore report. Deliveries of webhooks are queued
// in the same transaction. Its errors are those of the catalogue. Package save writes the
// end of a session.
package records

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
)

// Catalogue stores the records; see [profiles.SessionStore] and [profiles.DefaultStore].
type Catalogue interface {
	CreateSession(ctx context.Context, s profiles.Session) error
	UpdateSession(ctx context.Context, id string, change func(*profiles.Session) error) (profiles.Session, error)
	Default(ctx context.Context, userID string) (profiles.Default, error)
}

// Notices makes the deliveries of webhooks; see [events.Notices].
type Notices interface {
	Of(rec profiles.Session, events ...string) []profiles.Notice
	Wake()
}

// Records writes the records of sessions. Its methods are safe for concurrent use; each
// writes in one transaction.
type Records struct {
	catalogue Catalogue
	notices   Notices
}

// New makes Records.
func New(catalogue Catalogue, notices Notices) *Records { return &Records{catalogue, notices} }

// Create records a new session.
func (r *Records) Create(ctx context.Context, rec profiles.Session) error {
	defer r.notices.Wake()
	rec.Notices = r.notices.Of(rec, events.HookCreated)
	return r.catalogue.CreateSession(ctx, rec)
}

// ErrSaved says that the node that had lost a session saved what it had of it, after the session
// was looked up. It is newer than what the resume started from.
var ErrSaved = errors.New("the session was saved meanwhile")

// Resume records that an ended session is live again, as rec, and returns its record. was
// is the record before. Its creation time, key and webhook stay, and so do its task and its
// conversation, unless the session goes back to those of an older snapshot. If the daemon dies
// before the write, the session stays ended. A session that has not ended is
// session_ending. [ErrSaved] means that the caller must look it up again.
func (r *Records) Resume(ctx context.Context, rec, was profiles.Session, goesBack bool) (profiles.Session, error) {
	defer r.notices.Wake()
	// The default may move from a version that this session saved, or from the version
	// that the session starts from. Otherwise it may move only from the version the
	// session began with. What other sessions saved since then stays.
	base := was.BaseVersion
	switch d, err := r.catalogue.Default(ctx, rec.UserID); {
	case err == nil && (d.SessionID == rec.ID || d.SnapshotID == rec.BaseSnapshotID):
		base = d.Version
	case err != nil && !fault.Is(err, fault.DefaultNotFound):
		return rec, err
	}
	return r.catalogue.UpdateSession(ctx, rec.ID, func(now *profiles.Session) error {
		if was.Reason.Code == profiles.ReasonNodeLost && (now.Outcome != nil) != (was.Outcome != nil) {
			return ErrSaved
		}
		if now.EndedAt.IsZero() {
			return fault.New(fault.SessionEnding, "session.resume", "session %s has not ended", now.ID)
		}
		rec.CreatedAt, rec.KeyID, rec.Execution, rec.BaseVersion = now.CreatedAt, now.KeyID, now.Execution, base
		rec.Continues, rec.GoesBack = rec.BaseSnapshotID, goesBack
		rec.WebhookURL, rec.FromDefault = now.WebhookURL, now.FromDefault
		*now = rec
		now.Notices = r.notices.Of(rec, events.HookStatus)
		return nil
	})
}

// SetStatus records a session's status and its reason, and notifies webhooks of the events
// in notify.
func (r *Records) SetStatus(ctx context.Context, id string, status profiles.Status, reason profiles.Reason, notify []string) error {
	defer r.notices.Wake()
	_, err := r.catalogue.UpdateSession(ctx, id, func(rec *profiles.Session) error {
		rec.Status, rec.Reason = status, reason
		rec.Notices = r.notices.Of(*rec, notify...)
		return nil
	})
	return err
}

// SetReport records a session's restore report.
func (r *Records) SetReport(ctx context.Context, id string, report json.RawMessage) error {
	_, err := r.catalogue.UpdateSession(ctx, id, func(rec *profiles.Session) error {
		rec.Restored = report
		return nil
	})
	return err
}
