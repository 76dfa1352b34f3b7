package restore

import (
	"context"
	"slices"
	"strconv"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// Named is what a create names to start from. At most the first source that is set
// is looked at, in this order.
type Named struct {
	FromSession     string // a session ID
	FromEnvironment string // a session ID or a snapshot ID
	FromDefaultOf   string // a user ID

	SessionID   string // of the new session: FromSession, where that lives again
	UserID      string // "" for the source's user, else the caller's
	FreshIfNone bool   // where the source has no snapshot, a fresh environment
}

// Resolve finds what a session is to start from. What the caller may not act for is
// not found.
func (r *Restorer) Resolve(ctx context.Context, c access.Caller, n Named) (Environment, error) {
	const op = "restore.resolve"
	var e Environment
	source, snap, version, err := r.lookUp(ctx, c, n)
	switch {
	case err == nil && source != nil:
		e.Source, e.Snapshot, e.UserID = source, snap, snap.UserID
		if n.UserID != "" && n.UserID != snap.UserID {
			return e, fault.New(fault.UserMismatch, op, "user_id is not the user of the environment to restore")
		}
	case err == nil:
	case n.FreshIfNone && missing(err):
		// A fresh start is the same user's: what it saves is to be found there.
		if e.UserID = r.sourceUser(ctx, c, n); e.UserID != "" && n.UserID != "" && e.UserID != n.UserID {
			return e, fault.New(fault.UserMismatch, op, "user_id is not the user of the environment to restore")
		}
	default:
		return e, err
	}
	if e.Source == nil {
		for _, userID := range []string{n.UserID, c.UserID} {
			if e.UserID == "" {
				e.UserID = userID
			}
		}
		if !c.MayActFor(e.UserID) {
			return e, fault.New(fault.Forbidden, op, "the key does not act for this user")
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

// sourceUser is whose environment is named that is not there; "" where
// nothing tells.
func (r *Restorer) sourceUser(ctx context.Context, c access.Caller, n Named) string {
	id := n.FromSession
	if id == "" {
		id = n.FromEnvironment
	}
	if id == "" {
		return n.FromDefaultOf
	}
	rec, err := r.catalogue.Session(ctx, id)
	if err != nil || !c.MayActFor(rec.UserID) {
		return ""
	}
	return rec.UserID
}

// missing reports whether an error says that there is nothing to restore.
func missing(err error) bool {
	return fault.Is(err, fault.NoSnapshot) || fault.Is(err, fault.SnapshotNotFound)
}

// lookUp finds the first source that is named; nil where none is. version is
// that of the default, where the source is one.
func (r *Restorer) lookUp(ctx context.Context, c access.Caller, n Named) (source *Source, snap *profiles.Snapshot, version int64, err error) {
	switch {
	case n.FromSession != "":
		snap, err = r.newestOf(ctx, c, n.FromSession)
		if err == nil && n.FromSession == n.SessionID { // it is a resume
			*snap, err = r.renewed(ctx, *snap)
		}
		return &Source{Type: SourceSession, ID: n.FromSession}, snap, 0, err
	case n.FromEnvironment != "":
		snap, err = r.environment(ctx, c, n.FromEnvironment)
		return &Source{Type: SourceEnvironment, ID: n.FromEnvironment}, snap, 0, err
	case n.FromDefaultOf != "":
		snap, version, err = r.defaultOf(ctx, c, n.FromDefaultOf)
		return &Source{Type: SourceUserDefault, ID: n.FromDefaultOf}, snap, version, err
	default:
		return nil, nil, 0, nil
	}
}

// environment is the snapshot of that ID, or the one that the session of that
// ID stands for.
func (r *Restorer) environment(ctx context.Context, c access.Caller, id string) (*profiles.Snapshot, error) {
	snap, err := r.catalogue.Snapshot(ctx, id)
	switch {
	case fault.Is(err, fault.SnapshotNotFound):
		return r.newestOf(ctx, c, id)
	case err != nil:
		return nil, err
	case !c.MayActFor(snap.UserID):
		return nil, noSuchEnvironment()
	}
	return &snap, nil
}

func noSuchEnvironment() error {
	return fault.New(fault.SnapshotNotFound, "restore.resolve", "there is no such session or snapshot to restore from")
}

// newestOf is the snapshot that a session stands for.
func (r *Restorer) newestOf(ctx context.Context, c access.Caller, id string) (*profiles.Snapshot, error) {
	rec, err := r.catalogue.Session(ctx, id)
	if fault.Is(err, fault.SessionNotFound) || err == nil && !c.MayActFor(rec.UserID) {
		return nil, noSuchEnvironment()
	}
	if err != nil {
		return nil, err
	}
	if err := r.archives.AwaitRescue(ctx, id); err != nil {
		return nil, err
	}
	snap, err := r.newestUndamaged(ctx, id)
	if fault.Is(err, fault.NoSnapshot) {
		return nil, fault.New(fault.NoSnapshot, "restore.resolve",
			"session %s was never saved; end it with save_snapshot_mode, or create with if_missing=fresh", id)
	}
	return &snap, err
}

func (r *Restorer) defaultOf(ctx context.Context, c access.Caller, userID string) (*profiles.Snapshot, int64, error) {
	if !c.MayActFor(userID) {
		return nil, 0, noSuchEnvironment()
	}
	d, err := r.catalogue.Default(ctx, userID)
	if fault.Is(err, fault.DefaultNotFound) {
		return nil, 0, fault.New(fault.NoSnapshot, "restore.resolve",
			"the user has no default environment; save one with save_as_default=true, or create with if_missing=fresh")
	}
	if err != nil {
		return nil, 0, err
	}
	snap, err := r.catalogue.Snapshot(ctx, d.SnapshotID)
	if fault.Is(err, fault.SnapshotNotFound) {
		// The default has moved meanwhile, and the one before was removed.
		if now, nerr := r.catalogue.Default(ctx, userID); nerr == nil && now.Version != d.Version {
			return r.defaultOf(ctx, c, userID)
		}
	}
	return &snap, d.Version, err
}

// newestUndamaged is the newest snapshot of a session, but for checkpoints with damage
// where it has another one. None is no_snapshot.
func (r *Restorer) newestUndamaged(ctx context.Context, id string) (profiles.Snapshot, error) {
	newest, err := r.catalogue.NewestSnapshot(ctx, id)
	if err != nil || !r.archives.Saved(newest).Damaged {
		return newest, err
	}
	rows, _, err := r.catalogue.Snapshots(ctx, profiles.SnapshotFilter{SessionID: id})
	if err != nil {
		return newest, err
	}
	if at := slices.IndexFunc(rows, func(row profiles.Snapshot) bool { return !r.archives.Saved(row).Damaged }); at >= 0 {
		return rows[at], nil
	}
	return newest, nil
}

// renewed is what scheduled checks made of a snapshot, where the user's default is
// that and nobody else has moved it since; else the snapshot itself. A site that
// exchanges tokens knows the snapshot's no more.
func (r *Restorer) renewed(ctx context.Context, snap profiles.Snapshot) (profiles.Snapshot, error) {
	d, err := r.catalogue.Default(ctx, snap.UserID)
	if fault.Is(err, fault.DefaultNotFound) || err == nil && d.Renews == 0 {
		return snap, nil
	}
	if err != nil {
		return snap, err
	}
	// The page after a version begins with the one before it.
	page, _, err := r.catalogue.DefaultHistory(ctx, snap.UserID, 1, strconv.FormatInt(d.Renews+1, 10))
	if err != nil || len(page) == 0 || page[0].SnapshotID != snap.ID {
		return snap, err
	}
	now, err := r.catalogue.Snapshot(ctx, d.SnapshotID)
	if fault.Is(err, fault.SnapshotNotFound) { // the default has moved meanwhile
		return snap, nil
	}
	return now, err
}
