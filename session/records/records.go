// Package records writes what becomes of a session to its record, with the notices that
// webhooks are sent of it.
package records

import (
	"context"
	"encoding/json"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
)

// Catalogue is where the records are; see [profiles.SessionStore] and
// [profiles.DefaultStore].
type Catalogue interface {
	CreateSession(ctx context.Context, s profiles.Session) error
	UpdateSession(ctx context.Context, id string, change func(*profiles.Session) error) (profiles.Session, error)
	Default(ctx context.Context, userID string) (profiles.Default, error)
}

// Notices make what webhooks are sent; see [events.Notices].
type Notices interface {
	Of(rec profiles.Session, events ...string) []profiles.Notice
	Wake()
}

// Records are the records of sessions. Its methods are safe for concurrent use; each
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

// Resume records that a session which has ended lives again, as rec: until then a dead
// daemon leaves it ended. It keeps the time of its creation, its key, its task and its
// webhook. One that has not ended is session_ending.
func (r *Records) Resume(ctx context.Context, rec, was profiles.Session) (profiles.Session, error) {
	defer r.notices.Wake()
	// A default moves on from what this session itself made of it, else only from
	// where the session began: what others have saved since stands. One that begins
	// with what the default is now begins there.
	base := was.BaseVersion
	switch d, err := r.catalogue.Default(ctx, rec.UserID); {
	case err == nil && (d.SessionID == rec.ID || d.SnapshotID == rec.BaseSnapshotID):
		base = d.Version
	case err != nil && !fault.Is(err, fault.DefaultNotFound):
		return rec, err
	}
	return r.catalogue.UpdateSession(ctx, rec.ID, func(now *profiles.Session) error {
		if now.EndedAt.IsZero() {
			return fault.New(fault.SessionEnding, "session.resume", "session %s has not ended", now.ID)
		}
		rec.CreatedAt, rec.KeyID, rec.Execution, rec.BaseVersion = now.CreatedAt, now.KeyID, now.Execution, base
		rec.WebhookURL = now.WebhookURL
		*now = rec
		now.Notices = r.notices.Of(rec, events.HookStatus)
		return nil
	})
}

// SetStatus records how a session is, and notifies webhooks of some events with it.
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
