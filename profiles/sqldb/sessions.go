package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Sessions is the store of the records of sessions. It implements [profiles.SessionStore].
type Sessions struct{ db *handle }

var _ profiles.SessionStore = (*Sessions)(nil)

const sessionColumns = "session_id, user_id, key_id, agent_name, goal, engine, status, execution, reason_code, reason, " +
	"created_at, expires_at, ended_at, labels, request_hash, restored, outcome, base_snapshot_id, base_version, run_dir, discard, sealed, asked, webhook_url, from_default, node_id, ticket_salt"

func scanSession(r row) (profiles.Session, error) {
	var s profiles.Session
	var user, labels, restored, outcome []byte
	err := r.Scan(&s.ID, &user, &s.KeyID, &s.AgentName, &s.Goal, &s.Engine, &s.Status, &s.Execution, &s.Reason.Code, &s.Reason.Text,
		moment{&s.CreatedAt}, moment{&s.ExpiresAt}, moment{&s.EndedAt}, &labels, &s.RequestHash,
		&restored, &outcome, &s.BaseSnapshotID, &s.BaseVersion, &s.RunDir, &s.Discard, &s.Sealed, &s.SealedRequest, &s.WebhookURL, &s.FromDefault, &s.NodeID, &s.TicketSalt)
	if err != nil {
		return s, err
	}
	s.UserID, s.Restored, s.Outcome = string(user), restored, outcome
	s.Reason = profiles.StoredReason(s.Reason.Code, s.Reason.Text)
	return s, json.Unmarshal(labels, &s.Labels)
}

func sessionByID(ctx context.Context, q querier, id, op string) (profiles.Session, error) {
	s, err := scanSession(q.QueryRowContext(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE session_id = ?", id))
	return s, orMissing(err, fault.SessionNotFound, op)
}

// lockedSession is sessionByID, and locks the record.
func (h *handle) lockedSession(ctx context.Context, tx *sql.Tx, id, op string) (profiles.Session, error) {
	s, err := scanSession(tx.QueryRowContext(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE session_id = ?"+h.locking(), id))
	return s, orMissing(err, fault.SessionNotFound, op)
}

// CreateSession implements [profiles.SessionStore].
func (st *Sessions) CreateSession(ctx context.Context, s profiles.Session) error {
	const op = "profiles.create_session"
	return st.db.writeLocked(ctx, op, func(tx *sql.Tx) error {
		s.NodeID = st.db.nodeID()
		if err := addSession(ctx, tx, s, op); err != nil || s.Counts == nil {
			return err
		}
		return st.db.countClaim(ctx, tx, s.ID, *s.Counts, op)
	})
}

// addSession records a session and its user.
func addSession(ctx context.Context, tx *sql.Tx, s profiles.Session, op string) error {
	labels, err := encode(s.Labels)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO users (user_id, created_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
		[]byte(s.UserID), stamp(s.CreatedAt))
	if err != nil {
		return err
	}
	r, err := tx.ExecContext(ctx, "INSERT INTO sessions ("+sessionColumns+
		") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (session_id) DO NOTHING",
		s.ID, []byte(s.UserID), s.KeyID, s.AgentName, s.Goal, s.Engine, s.Status, s.Execution, s.Reason.Code, s.Reason.Text,
		stamp(s.CreatedAt), stamp(s.ExpiresAt), stamp(s.EndedAt), labels, s.RequestHash,
		blob(s.Restored), blob(s.Outcome), s.BaseSnapshotID, s.BaseVersion, s.RunDir, s.Discard, s.Sealed, s.SealedRequest, s.WebhookURL, s.FromDefault, s.NodeID, s.TicketSalt)
	if err := requireRow(r, err, fault.SessionExists, op); err != nil {
		return err
	}
	return addNotices(ctx, tx, s, s.Notices)
}

// Session implements [profiles.SessionStore].
func (st *Sessions) Session(ctx context.Context, id string) (profiles.Session, error) {
	return sessionByID(ctx, st.db.reader, id, "profiles.session")
}

// Sessions implements [profiles.SessionStore].
func (st *Sessions) Sessions(ctx context.Context, f profiles.SessionFilter) ([]profiles.Session, string, error) {
	const op = "profiles.sessions"
	where, args := conditions(f)
	if f.StartAfter != "" {
		// The cursor must be one that this filter may have returned. Otherwise it would
		// show one user when another user's session was made.
		var at int64
		query, args2 := "SELECT created_at FROM sessions WHERE session_id = ?", []any{f.StartAfter}
		if f.UserID != "" {
			query, args2 = query+" AND user_id = ?", append(args2, []byte(f.UserID))
		}
		err := st.db.reader.QueryRowContext(ctx, query, args2...).Scan(&at)
		if err != nil {
			return nil, "", badCursor(err, op)
		}
		where = append(where, "(created_at < ? OR (created_at = ? AND session_id < ?))")
		args = append(args, at, at, f.StartAfter)
	}
	query := "SELECT " + sessionColumns + " FROM sessions"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	query += " ORDER BY created_at DESC, session_id DESC LIMIT ?"

	limit := limited(f.Limit)
	if f.Limit > 0 {
		limit++ // one more tells whether a page follows
	}
	page, err := collect(ctx, st.db.reader, scanSession, query, append(args, limit)...)
	if err != nil {
		return nil, "", failure(op, err)
	}
	if f.Limit > 0 && len(page) > f.Limit {
		return page[:f.Limit], page[f.Limit-1].ID, nil
	}
	return page, "", nil
}

// conditions returns the filter's SQL conditions and their arguments.
func conditions(f profiles.SessionFilter) (where []string, args []any) {
	if f.UserID != "" {
		where, args = append(where, "user_id = ?"), append(args, []byte(f.UserID))
	}
	if f.Status != "" {
		where, args = append(where, "status = ?"), append(args, f.Status)
	}
	if f.Live {
		where = append(where, "status NOT IN (?, ?, ?)")
		args = append(args, profiles.StatusCompleted, profiles.StatusTerminated, profiles.StatusError)
	}
	return where, args
}

// UpdateSession implements [profiles.SessionStore].
func (st *Sessions) UpdateSession(ctx context.Context, id string, change func(*profiles.Session) error) (profiles.Session, error) {
	const op = "profiles.update_session"
	var s profiles.Session
	err := st.db.write(ctx, op, func(tx *sql.Tx) error {
		was, err := sessionByID(ctx, tx, id, op)
		if err != nil {
			return err
		}
		s = was
		if err := change(&s); err != nil {
			return callerError{err}
		}
		if s.ID != was.ID || s.UserID != was.UserID || !s.CreatedAt.Equal(was.CreatedAt) {
			return fault.New(fault.Internal, op, "the ID, user and time of creation of a session cannot change")
		}
		if s.EndedAt.IsZero() && !was.EndedAt.IsZero() {
			s.NodeID = st.db.nodeID() // it lives again, here
		}
		labels, err := encode(s.Labels)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE sessions SET key_id = ?, agent_name = ?, goal = ?, engine = ?, status = ?, "+
			"execution = ?, reason_code = ?, reason = ?, expires_at = ?, ended_at = ?, labels = ?, request_hash = ?, restored = ?, outcome = ?, "+
			"base_snapshot_id = ?, base_version = ?, run_dir = ?, discard = ?, sealed = ?, asked = ?, webhook_url = ?, from_default = ?, node_id = ?, ticket_salt = ? WHERE session_id = ?",
			s.KeyID, s.AgentName, s.Goal, s.Engine, s.Status, s.Execution, s.Reason.Code, s.Reason.Text, stamp(s.ExpiresAt), stamp(s.EndedAt), labels,
			s.RequestHash, blob(s.Restored), blob(s.Outcome), s.BaseSnapshotID, s.BaseVersion,
			s.RunDir, s.Discard, s.Sealed, s.SealedRequest, s.WebhookURL, s.FromDefault, s.NodeID, s.TicketSalt, id)
		if err != nil {
			return err
		}
		if s.Continues != "" {
			if err := continueTalk(ctx, tx, &s, op); err != nil {
				return err
			}
		}
		err = addNotices(ctx, tx, s, s.Notices)
		s.Notices, s.Continues, s.GoesBack = nil, "", false
		return err
	})
	if err != nil {
		return profiles.Session{}, err
	}
	return s, nil
}
