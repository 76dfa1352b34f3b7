package placement

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Source names what a new session starts from, as a create does. The first that is set counts.
type Source struct {
	Session     string // a session ID
	Environment string // a session ID or a snapshot ID
	DefaultOf   string // a user ID
	SnapshotID  string // of Session: an older snapshot
	// Shares says that another live session of the environment matters: the create wants to
	// share it, to wait for its end, or to fail.
	Shares bool
}

// Environments looks up what a create starts from.
type Environments interface {
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
	NewestSnapshot(ctx context.Context, sessionID string) (profiles.Snapshot, error)
	Default(ctx context.Context, userID string) (profiles.Default, error)
	Sessions(ctx context.Context, f profiles.SessionFilter) (page []profiles.Session, next string, err error)
}

// Want returns what a create of an engine ("": any) needs of its node. It checks no rights: the
// node that takes the session does. What cannot be found is left out, and that node reports it.
func Want(ctx context.Context, in Environments, engine string, from Source) (Wanted, error) {
	w := Wanted{Engine: engine}
	snap, found, err := from.snapshot(ctx, in)
	if err != nil || !found {
		return w, err
	}
	w.SnapshotID, w.UserID = snap.ID, snap.UserID
	if w.Engine == "" || w.Engine == snap.Engine {
		w.Engine, w.Chrome = snap.Engine, snap.Chrome
	}
	if from.Shares {
		w.Holder, err = from.holder(ctx, in, snap)
	}
	return w, err
}

// snapshot returns the snapshot that the source stands for now.
func (s Source) snapshot(ctx context.Context, in Environments) (snap profiles.Snapshot, found bool, err error) {
	switch {
	case s.Session != "" && s.SnapshotID != "":
		snap, err = in.Snapshot(ctx, s.SnapshotID)
	case s.Session != "":
		snap, err = in.NewestSnapshot(ctx, s.Session)
	case s.Environment != "":
		snap, err = in.Snapshot(ctx, s.Environment)
		if fault.Is(err, fault.SnapshotNotFound) {
			snap, err = in.NewestSnapshot(ctx, s.Environment)
		}
	case s.DefaultOf != "":
		var d profiles.Default
		if d, err = in.Default(ctx, s.DefaultOf); err == nil {
			snap, err = in.Snapshot(ctx, d.SnapshotID)
		}
	default:
		return snap, false, nil
	}
	switch fault.CodeOf(err) {
	case fault.SnapshotNotFound, fault.SessionNotFound, fault.NoSnapshot, fault.DefaultNotFound:
		return snap, false, nil
	}
	return snap, err == nil, err
}

// holder returns the node of the oldest live session that came from the same environment; ""
// if there is none.
func (s Source) holder(ctx context.Context, in Environments, snap profiles.Snapshot) (nodeID string, err error) {
	live, _, err := in.Sessions(ctx, profiles.SessionFilter{UserID: snap.UserID, Live: true})
	if err != nil {
		return "", err
	}
	for _, rec := range live { // newest first
		if rec.EndedAt.IsZero() && (rec.ID == snap.SessionID || rec.BaseSnapshotID == snap.ID || s.DefaultOf != "" && rec.FromDefault) {
			nodeID = rec.NodeID
		}
	}
	return nodeID, nil
}
