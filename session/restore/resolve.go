package restore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// SourceRequest is what a create names to start from. Only the first source that is set
// counts, in this order.
type SourceRequest struct {
	FromSession     string // a session ID
	FromEnvironment string // a session ID or a snapshot ID
	FromDefaultOf   string // a user ID

	SessionID   string // the new session's; equals FromSession on a resume
	UserID      string // "" for the source's user, else the caller's
	FreshIfNone bool   // start fresh if the source has no snapshot
	SnapshotID  string // of FromSession: this snapshot; "": the newest
}

// Resolve finds what a session starts from. A source of a user that the caller may not
// act for counts as not found.
func (r *Restorer) Resolve(ctx context.Context, c access.Caller, q SourceRequest) (Environment, error) {
	const op = "restore.resolve"
	var e Environment
	source, snap, version, err := r.lookUp(ctx, c, q)
	switch {
	case err == nil && source != nil:
		e.Source, e.Snapshot, e.UserID = source, snap, snap.UserID
		if q.UserID != "" && q.UserID != snap.UserID {
			return e, fault.New(fault.UserMismatch, op, "user_id: differs from the user of the environment to restore; leave it out or name that user")
		}
	case err == nil:
	case q.FreshIfNone && isMissing(err):
		// A fresh start belongs to the same user, so that its snapshots are found there.
		if e.UserID = r.sourceUser(ctx, c, q); e.UserID != "" && q.UserID != "" && e.UserID != q.UserID {
			return e, fault.New(fault.UserMismatch, op, "user_id: differs from the user of the environment to restore; leave it out or name that user")
		}
	default:
		return e, err
	}
	if e.Source == nil {
		for _, userID := range []string{q.UserID, c.UserID} {
			if e.UserID == "" {
				e.UserID = userID
			}
		}
		if !c.MayActFor(e.UserID) {
			return e, fault.New(fault.Forbidden, op, "user_id: the key may not act for this user")
		}
	}
	if version != 0 {
		e.Version = version
		return e, nil
	}
	d, err := r.catalogue.Default(ctx, e.UserID)
	if fault.Is(err, fault.DefaultNotFound) {
		return e, nil
	}
	e.Version = d.Version
	return e, err
}

// sourceUser returns the user of a named source that has no snapshot; "" if that is
// unknown.
func (r *Restorer) sourceUser(ctx context.Context, c access.Caller, q SourceRequest) string {
	id := q.FromSession
	if id == "" {
		id = q.FromEnvironment
	}
	if id == "" {
		return q.FromDefaultOf
	}
	rec, err := r.catalogue.Session(ctx, id)
	if err != nil || !c.MayActFor(rec.UserID) {
		return ""
	}
	return rec.UserID
}

// isMissing reports whether an error says that there is nothing to restore.
func isMissing(err error) bool {
	return fault.Is(err, fault.NoSnapshot) || fault.Is(err, fault.SnapshotNotFound)
}

// lookUp finds the first source that is set; nil if none is. version is the version of
// the default if the source is a default, else 0.
func (r *Restorer) lookUp(ctx context.Context, c access.Caller, q SourceRequest) (source *Source, snap *profiles.Snapshot, version int64, err error) {
	switch {
	case q.FromSession != "":
		if q.SnapshotID != "" {
			snap, err = r.olderOf(ctx, c, q.FromSession, q.SnapshotID)
			return &Source{Type: SourceSession, ID: q.FromSession}, snap, 0, err
		}
		field := "restore_from_session_id"
		if q.FromSession == q.SessionID { // it is a resume
			field = "session_id"
		}
		snap, err = r.newestOf(ctx, c, field, q.FromSession)
		if err == nil && q.FromSession == q.SessionID { // it is a resume
			*snap, err = r.latestRenewal(ctx, *snap)
		}
		return &Source{Type: SourceSession, ID: q.FromSession}, snap, 0, err
	case q.FromEnvironment != "":
		snap, err = r.environment(ctx, c, q.FromEnvironment)
		return &Source{Type: SourceEnvironment, ID: q.FromEnvironment}, snap, 0, err
	case q.FromDefaultOf != "":
		snap, version, err = r.defaultOf(ctx, c, q.FromDefaultOf)
		return &Source{Type: SourceUserDefault, ID: q.FromDefaultOf}, snap, version, err
	default:
		return nil, nil, 0, nil
	}
}

// environment returns the snapshot with that ID, or the newest one of the session with
// that ID.
func (r *Restorer) environment(ctx context.Context, c access.Caller, id string) (*profiles.Snapshot, error) {
	snap, err := r.catalogue.Snapshot(ctx, id)
	switch {
	case fault.Is(err, fault.SnapshotNotFound):
		return r.newestOf(ctx, c, environmentField, id)
	case err != nil:
		return nil, err
	case !c.MayActFor(snap.UserID):
		return nil, noSuchSource(environmentField, id)
	}
	return &snap, nil
}

// olderOf returns a snapshot of a session, for a resume from that snapshot.
func (r *Restorer) olderOf(ctx context.Context, c access.Caller, sessionID, id string) (*profiles.Snapshot, error) {
	const field = "snapshot_id"
	snap, err := r.catalogue.Snapshot(ctx, id)
	switch {
	case fault.Is(err, fault.SnapshotNotFound), err == nil && !c.MayActFor(snap.UserID):
		return nil, fault.New(fault.SnapshotNotFound, "restore.resolve", "%s: there is no snapshot %q for this key", field, id)
	case err != nil:
		return nil, err
	case snap.SessionID != sessionID:
		return nil, fault.New(fault.InvalidField, "restore.resolve",
			"%s: belongs to session %s; a session resumes only from its own snapshots; to start another session from it, create one with restore_from_environment_id", field, snap.SessionID)
	}
	return &snap, nil
}

// environmentField is the field of a create that names a snapshot or a session.
const environmentField = "restore_from_environment_id"

// noSuchSource is the error for a source that does not exist or belongs to another user. It
// is the same for both.
func noSuchSource(field, id string) error {
	what := "session"
	if field == environmentField {
		what = "snapshot or session"
	}
	return fault.New(fault.SnapshotNotFound, "restore.resolve", "%s: there is no %s %q for this key", field, what, id)
}

// newestOf returns the snapshot that a create from this session restores. field is the
// field that names the session.
func (r *Restorer) newestOf(ctx context.Context, c access.Caller, field, id string) (*profiles.Snapshot, error) {
	rec, err := r.catalogue.Session(ctx, id)
	if fault.Is(err, fault.SessionNotFound) || err == nil && !c.MayActFor(rec.UserID) {
		return nil, noSuchSource(field, id)
	}
	if err != nil {
		return nil, err
	}
	if err := r.archives.AwaitRescue(ctx, id); err != nil {
		return nil, err
	}
	snap, err := r.newestUndamaged(ctx, id)
	if fault.Is(err, fault.NoSnapshot) {
		advice := "end it with save_snapshot_mode=filesystem, or create with if_missing=fresh"
		if rec, err = r.catalogue.Session(ctx, id); err != nil { // it may have ended during the wait
			return nil, err
		}
		if until, ok := r.cfg.Discarded.Until(id); ok {
			advice = "it has ended, and until " + until.Format(time.RFC3339) + " a DELETE with save_snapshot_mode=filesystem, or a resume, can still save it"
		} else if !rec.EndedAt.IsZero() {
			advice = "it has ended, so nothing of it can be restored; " + r.insteadOf(ctx, rec)
		}
		return nil, fault.New(fault.NoSnapshot, "restore.resolve", "%s: session %s was never saved; %s", field, id, advice)
	}
	return &snap, err
}

// insteadOf advises what to start from instead of an ended session that has no snapshot: the
// snapshot that it was restored from, if that still exists.
func (r *Restorer) insteadOf(ctx context.Context, rec profiles.Session) string {
	if rec.BaseSnapshotID != "" {
		if _, err := r.catalogue.Snapshot(ctx, rec.BaseSnapshotID); err == nil {
			return "it was restored from snapshot " + rec.BaseSnapshotID + ", so create with " + environmentField + " and that ID"
		}
	}
	return "create with if_missing=fresh for an empty browser"
}

func (r *Restorer) defaultOf(ctx context.Context, c access.Caller, userID string) (*profiles.Snapshot, int64, error) {
	const field = "restore_default_environment_from_user_id"
	if !c.MayActFor(userID) {
		return nil, 0, fault.New(fault.SnapshotNotFound, "restore.resolve", "%s: there is no user %q for this key", field, userID)
	}
	d, err := r.catalogue.Default(ctx, userID)
	if fault.Is(err, fault.DefaultNotFound) {
		return nil, 0, fault.New(fault.NoSnapshot, "restore.resolve",
			"%s: user %q has no default environment; save one with save_as_default=true, or create with if_missing=fresh", field, userID)
	}
	if err != nil {
		return nil, 0, err
	}
	snap, err := r.catalogue.Snapshot(ctx, d.SnapshotID)
	if fault.Is(err, fault.SnapshotNotFound) {
		// The default has moved since, and its previous snapshot was removed.
		if now, nerr := r.catalogue.Default(ctx, userID); nerr == nil && now.Version != d.Version {
			return r.defaultOf(ctx, c, userID)
		}
	}
	return &snap, d.Version, err
}

// newestUndamaged returns a session's newest snapshot that is not a damaged checkpoint.
// If all are damaged it returns the newest. If there is none, the error is no_snapshot.
func (r *Restorer) newestUndamaged(ctx context.Context, id string) (profiles.Snapshot, error) {
	newest, err := r.catalogue.NewestSnapshot(ctx, id)
	if err != nil || !r.archives.SaveReport(newest).Damaged {
		return newest, err
	}
	rows, _, err := r.catalogue.Snapshots(ctx, profiles.SnapshotFilter{SessionID: id})
	if err != nil {
		return newest, err
	}
	if at := slices.IndexFunc(rows, func(row profiles.Snapshot) bool { return !r.archives.SaveReport(row).Damaged }); at >= 0 {
		return rows[at], nil
	}
	return newest, nil
}

// latestRenewal returns the snapshot that scheduled checks made from snap, if that is the
// user's default and only such checks have moved the default since. Otherwise it returns
// snap. A site that rotates tokens no longer accepts those in snap.
func (r *Restorer) latestRenewal(ctx context.Context, snap profiles.Snapshot) (profiles.Snapshot, error) {
	d, err := r.catalogue.Default(ctx, snap.UserID)
	if fault.Is(err, fault.DefaultNotFound) || err == nil && d.Renews == 0 {
		return snap, nil
	}
	if err != nil {
		return snap, err
	}
	// The history is listed backwards, so the page that follows Renews+1 begins with
	// Renews.
	page, _, err := r.catalogue.DefaultHistory(ctx, snap.UserID, 1, strconv.FormatInt(d.Renews+1, 10))
	if err != nil || len(page) == 0 || page[0].SnapshotID != snap.ID {
		return snap, err
	}
	now, err := r.catalogue.Snapshot(ctx, d.SnapshotID)
	if fault.Is(err, fault.SnapshotNotFound) { // the default has moved since
		return snap, nil
	}
	return now, err
}
