package sqldb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

var _ profiles.ClaimStore = (*Claims)(nil)

const sessionClaimColumns = "session_id, node_id, key_id, user_id, source_type, source_id, snapshot_id"

func scanSessionClaim(r row) (*profiles.SessionClaim, error) {
	var c profiles.SessionClaim
	var user []byte
	err := r.Scan(&c.SessionID, &c.NodeID, &c.KeyID, &user, &c.SourceType, &c.SourceID, &c.SnapshotID)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	c.UserID = string(user)
	return &c, err
}

func scanCheckClaim(r row) (*profiles.CheckClaim, error) {
	var c profiles.CheckClaim
	var user []byte
	err := r.Scan(&user, &c.NodeID, &c.Scheduled, &c.SnapshotID, &c.Wanted)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	c.UserID = string(user)
	return &c, err
}

// ClaimSession implements [profiles.ClaimStore].
func (st *Claims) ClaimSession(ctx context.Context, sessionID, keyID string) (held *profiles.SessionClaim, err error) {
	const op = "profiles.claim_session"
	const insert = "INSERT INTO session_claims (session_id, node_id, number, key_id, user_id, source_type, source_id, snapshot_id, quota_key, quota_user, limits) " +
		"VALUES (?, ?, ?, ?, ?, '', '', '', '', ?, '') ON CONFLICT (session_id) DO "
	fresh := false // nobody has claimed the ID, as almost always
	err = st.db.writeLocked(ctx, op, func(tx *sql.Tx) error {
		node, number := st.db.own()
		r, err := tx.ExecContext(ctx, insert+"NOTHING", sessionID, node, number, keyID, []byte{}, []byte{})
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		fresh = n == 1
		return err
	})
	if err != nil || fresh {
		return nil, err
	}
	err = st.db.write(ctx, op, func(tx *sql.Tx) error {
		node, number := st.db.own()
		held, err = otherSession(ctx, tx, sessionID, node)
		if err != nil || held != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, insert+"UPDATE SET node_id = excluded.node_id, number = excluded.number, key_id = excluded.key_id, "+
			"user_id = excluded.user_id, source_type = '', source_id = '', snapshot_id = '', quota_key = '', quota_user = excluded.quota_user, limits = ''",
			sessionID, node, number, keyID, []byte{}, []byte{})
		return err
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

// otherSession returns the claim of another node on a session; nil if there is none. That of a
// node which has ended the session as moved holds only the environment, unless the node has claimed
// it again, to continue it itself; see [handle.leaveEnvironment].
func otherSession(ctx context.Context, q querier, sessionID, node string) (*profiles.SessionClaim, error) {
	return scanSessionClaim(q.QueryRowContext(ctx, "SELECT "+sessionClaimColumns+" FROM session_claims c WHERE session_id = ? AND node_id <> ? AND "+leased+
		" AND NOT EXISTS (SELECT 1 FROM sessions s WHERE c.key_id = '' AND s.session_id = c.session_id AND s.node_id = c.node_id AND s.reason_code = 'moved' AND s.ended_at <> 0)", sessionID, node))
}

// EnterEnvironment implements [profiles.ClaimStore].
func (st *Claims) EnterEnvironment(ctx context.Context, own profiles.SessionClaim, snapshotSession string, company bool) (held *profiles.SessionClaim, check *profiles.CheckClaim, err error) {
	const op = "profiles.enter_environment"
	err = st.db.write(ctx, op, func(tx *sql.Tx) error {
		node, number := st.db.own()
		held, check = nil, nil
		user := []byte(own.UserID)
		isDefault := own.SourceType == profiles.SourceDefault && own.SourceID == own.UserID
		check, err = scanCheckClaim(tx.QueryRowContext(ctx, "SELECT user_id, node_id, scheduled, snapshot_id, wanted FROM check_claims c "+
			"WHERE user_id = ? AND scheduled AND node_id <> ? AND (snapshot_id = ? OR ?) AND "+leased, user, node, own.SnapshotID, isDefault))
		if err != nil {
			return err
		}
		if check != nil {
			_, err = tx.ExecContext(ctx, "UPDATE check_claims SET wanted = ? WHERE user_id = ?", true, user)
			return err
		}
		if !company {
			held, err = scanSessionClaim(tx.QueryRowContext(ctx, "SELECT "+sessionClaimColumns+" FROM session_claims c WHERE "+leased+" AND node_id <> ? AND session_id <> ? "+
				"AND (session_id = ? OR user_id = ? AND (snapshot_id = ? OR source_type = ? AND source_id = ?)) LIMIT 1",
				node, own.SessionID, snapshotSession, user, own.SnapshotID, own.SourceType, own.SourceID))
			if err != nil || held != nil {
				return err
			}
		}
		r, err := tx.ExecContext(ctx, "UPDATE session_claims SET user_id = ?, source_type = ?, source_id = ?, snapshot_id = ? WHERE session_id = ? AND node_id = ? AND number = ?",
			user, own.SourceType, own.SourceID, own.SnapshotID, own.SessionID, node, number)
		return requireRow(r, err, fault.NodeLost, op)
	})
	if err != nil {
		return nil, nil, err
	}
	return held, check, nil
}

// CountSession implements [profiles.ClaimStore].
func (st *Claims) CountSession(ctx context.Context, sessionID string, c profiles.QuotaCount, admit func(profiles.QuotaUse) error) error {
	const op = "profiles.count_session"
	write := st.db.writeLocked
	if c.OfUser || c.OfKey {
		write = st.db.write // others must not count at the same time
	}
	return write(ctx, op, func(tx *sql.Tx) error {
		var u profiles.QuotaUse
		count := func(all, saving *int64, column string, value any) error {
			return tx.QueryRowContext(ctx, "SELECT COUNT(*), COUNT(CASE WHEN limits = 'snapshots' THEN 1 END) FROM session_claims c WHERE "+column+" = ? AND limits <> '' AND session_id <> ? AND "+leased,
				value, sessionID).Scan(all, saving)
		}
		if c.OfUser {
			if err := count(&u.UserSessions, &u.UserSaving, "quota_user", []byte(c.UserID)); err != nil {
				return err
			}
		}
		if c.OfKey {
			if err := count(&u.KeySessions, &u.KeySaving, "quota_key", c.KeyID); err != nil {
				return err
			}
		}
		if err := admit(u); err != nil {
			return callerError{err}
		}
		return st.db.countClaim(ctx, tx, sessionID, c, op)
	})
}

// countClaim records in the claim of a session whose quotas it counts for.
func (h *handle) countClaim(ctx context.Context, tx *sql.Tx, sessionID string, c profiles.QuotaCount, op string) error {
	limits := "sessions"
	if c.Saves {
		limits = "snapshots"
	}
	node, number := h.own()
	r, err := tx.ExecContext(ctx, "UPDATE session_claims SET quota_user = ?, quota_key = ?, limits = ? WHERE session_id = ? AND node_id = ? AND number = ?",
		[]byte(c.UserID), c.KeyID, limits, sessionID, node, number)
	return requireRow(r, err, fault.NodeLost, op)
}

// ReleaseSession implements [profiles.ClaimStore].
func (st *Claims) ReleaseSession(ctx context.Context, sessionID string) error {
	return st.db.writeLocked(ctx, "profiles.release_session", func(tx *sql.Tx) error { return st.db.releaseSession(ctx, tx, sessionID) })
}

// releaseSession removes the claim of a session on this node, if this is one.
func (h *handle) releaseSession(ctx context.Context, tx *sql.Tx, sessionID string) error {
	node, number := h.own()
	if node == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM session_claims WHERE session_id = ? AND node_id = ? AND number = ?", sessionID, node, number)
	return err
}

// leaveEnvironment has the claim of a session on this node, which ends it as moved, hold only the
// environment. Its key is empty from then on, until a node claims the session again.
func (h *handle) leaveEnvironment(ctx context.Context, tx *sql.Tx, sessionID string) error {
	node, number := h.own()
	if node == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, "UPDATE session_claims SET key_id = '' WHERE session_id = ? AND node_id = ? AND number = ?", sessionID, node, number)
	return err
}

// SessionClaim implements [profiles.ClaimStore].
func (st *Claims) SessionClaim(ctx context.Context, sessionID string) (*profiles.SessionClaim, error) {
	c, err := scanSessionClaim(st.db.reader.QueryRowContext(ctx, "SELECT "+sessionClaimColumns+" FROM session_claims c WHERE session_id = ? AND "+leased, sessionID))
	return c, failure("profiles.session_claim", err)
}

// EnterCheck implements [profiles.ClaimStore].
func (st *Claims) EnterCheck(ctx context.Context, k profiles.CheckClaim) (entered bool, err error) {
	err = st.db.write(ctx, "profiles.enter_check", func(tx *sql.Tx) error {
		node, number := st.db.own()
		var others int
		user := []byte(k.UserID)
		err := tx.QueryRowContext(ctx, "SELECT (SELECT COUNT(*) FROM check_claims c WHERE user_id = ? AND "+leased+") + "+
			"(SELECT COUNT(*) FROM session_claims c WHERE ? AND user_id = ? AND (snapshot_id = ? OR source_type = ? AND source_id = ?) AND "+leased+") + "+
			"(SELECT COUNT(*) FROM session_claims c JOIN snapshots s ON s.session_id = c.session_id WHERE ? AND s.snapshot_id = ? AND "+leased+")",
			user, k.Scheduled, user, k.SnapshotID, profiles.SourceDefault, k.UserID, k.Scheduled, k.SnapshotID).Scan(&others)
		if entered = err == nil && others == 0; !entered {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO check_claims (user_id, node_id, number, scheduled, snapshot_id, wanted) VALUES (?, ?, ?, ?, ?, ?) "+
			"ON CONFLICT (user_id) DO UPDATE SET node_id = excluded.node_id, number = excluded.number, scheduled = excluded.scheduled, snapshot_id = excluded.snapshot_id, wanted = excluded.wanted",
			user, node, number, k.Scheduled, k.SnapshotID, false)
		return err
	})
	return entered && err == nil, err
}

// LeaveCheck implements [profiles.ClaimStore].
func (st *Claims) LeaveCheck(ctx context.Context, userID string) error {
	return st.db.write(ctx, "profiles.leave_check", func(tx *sql.Tx) error {
		node, number := st.db.own()
		_, err := tx.ExecContext(ctx, "DELETE FROM check_claims WHERE user_id = ? AND node_id = ? AND number = ?", []byte(userID), node, number)
		return err
	})
}

// CheckClaim implements [profiles.ClaimStore].
func (st *Claims) CheckClaim(ctx context.Context, userID string) (*profiles.CheckClaim, error) {
	c, err := scanCheckClaim(st.db.reader.QueryRowContext(ctx, "SELECT user_id, node_id, scheduled, snapshot_id, wanted FROM check_claims c WHERE user_id = ? AND "+leased, []byte(userID)))
	return c, failure("profiles.check_claim", err)
}
