package sqldb

import (
	"context"

	"github.com/stasisd/stasis/profiles"
)

// UsersWithSnapshots implements [profiles.RetentionStore].
func (st *Snapshots) UsersWithSnapshots(ctx context.Context) ([]string, error) {
	all, err := collect(ctx, st.db.reader, func(r row) (string, error) {
		var user []byte
		err := r.Scan(&user)
		return string(user), err
	}, "SELECT DISTINCT user_id FROM snapshots ORDER BY user_id")
	return all, failure("profiles.users_with_snapshots", err)
}

// NeededSnapshots implements [profiles.RetentionStore].
func (st *Snapshots) NeededSnapshots(ctx context.Context, userID string) ([]profiles.NeededSnapshot, error) {
	needed, err := neededSnapshots(ctx, st.db.reader, userID)
	return needed, failure("profiles.needed_snapshots", err)
}

// neededSnapshots lists those that exist. A session without an end time has not ended;
// this includes a session in error whose data is kept.
func neededSnapshots(ctx context.Context, q querier, userID string) ([]profiles.NeededSnapshot, error) {
	user := []byte(userID)
	return collect(ctx, q, func(r row) (n profiles.NeededSnapshot, err error) {
		err = r.Scan(&n.SnapshotID, &n.By)
		return n, err
	}, `SELECT n.snapshot_id, n.needed_by FROM (
			SELECT snapshot_id, ? AS needed_by FROM defaults
			WHERE user_id = ? AND version = (SELECT MAX(version) FROM defaults WHERE user_id = ?)
			UNION
			SELECT base_snapshot_id, ? FROM sessions WHERE user_id = ? AND ended_at = 0
			UNION
			SELECT (SELECT snapshot_id FROM snapshots WHERE session_id = s.session_id ORDER BY sequence DESC LIMIT 1), ?
			FROM sessions s WHERE s.user_id = ? AND s.ended_at = 0
		) AS n JOIN snapshots k ON k.snapshot_id = n.snapshot_id AND k.user_id = ?
		ORDER BY k.sequence DESC, n.needed_by`,
		profiles.NeededByDefault, user, user, profiles.NeededBySession, user, profiles.NeededBySession, user, user)
}
