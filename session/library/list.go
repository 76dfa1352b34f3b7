package library

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// Snapshots lists a session's snapshots, newest first, and returns the cursor of the next
// page.
func (l *Library) Snapshots(ctx context.Context, c access.Caller, sessionID string, limit int, startAfter string) ([]SnapshotInfo, string, error) {
	if _, err := l.sessions.Record(ctx, c, sessionID, access.Look); err != nil {
		return nil, "", err
	}
	return l.page(ctx, profiles.SnapshotFilter{SessionID: sessionID, Limit: limit, StartAfter: startAfter})
}

// AllSnapshots lists a user's snapshots of all sessions, newest first. If userID is "",
// it lists those of every user that the caller may act for.
func (l *Library) AllSnapshots(ctx context.Context, c access.Caller, userID string, limit int, startAfter string) ([]SnapshotInfo, string, error) {
	if err := c.Require(access.Look); err != nil {
		return nil, "", err
	}
	if userID == "" && !c.ForEveryUser() {
		userID = c.UserID
	}
	if userID != "" && !c.MayActFor(userID) {
		return []SnapshotInfo{}, "", nil
	}
	return l.page(ctx, profiles.SnapshotFilter{UserID: userID, Limit: limit, StartAfter: startAfter})
}

func (l *Library) page(ctx context.Context, f profiles.SnapshotFilter) ([]SnapshotInfo, string, error) {
	rows, next, err := l.records.Snapshots(ctx, f)
	if err != nil {
		return nil, "", err
	}
	page := make([]SnapshotInfo, 0, len(rows))
	for _, row := range rows {
		page = append(page, InfoOf(row, l.now()))
	}
	return page, next, nil
}

// Snapshot describes one snapshot.
func (l *Library) Snapshot(ctx context.Context, c access.Caller, id string) (SnapshotInfo, error) {
	row, err := l.find(ctx, c, id, access.Look)
	return InfoOf(row, l.now()), err
}

// errNoSnapshot is the error for another user's snapshot. Its text is that of an unknown ID,
// so that callers cannot find out which IDs exist.
func errNoSnapshot(op string) error {
	return fault.New(fault.SnapshotNotFound, op, "")
}

// find returns the record of a snapshot, if the caller may act for its user.
func (l *Library) find(ctx context.Context, c access.Caller, id string, p access.Permission) (profiles.Snapshot, error) {
	if err := c.Require(p); err != nil {
		return profiles.Snapshot{}, err
	}
	row, err := l.records.Snapshot(ctx, id)
	if err == nil && !c.MayActFor(row.UserID) {
		return profiles.Snapshot{}, errNoSnapshot("library.snapshot")
	}
	return row, err
}

// findSecret returns the record of a snapshot whose secrets the caller may read, and logs
// the caller's key.
func (l *Library) findSecret(ctx context.Context, c access.Caller, id string) (profiles.Snapshot, error) {
	if err := c.Require(access.Secrets); err != nil {
		return profiles.Snapshot{}, err
	}
	row, err := l.find(ctx, c, id, access.Look)
	if err == nil {
		l.log.Info("a client reads the secrets of a snapshot", "snapshot", id, "key", c.KeyID)
	}
	return row, err
}

// DeleteSnapshot removes a snapshot and ends a Chrome that is parked with it. If the
// snapshot is a user's default or is being read, the error is snapshot_in_use.
func (l *Library) DeleteSnapshot(ctx context.Context, c access.Caller, id string) error {
	row, err := l.find(ctx, c, id, access.Manage)
	if err != nil {
		return err
	}
	return l.snapshots.Delete(ctx, row)
}
