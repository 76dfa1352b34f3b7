package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Commit implements [profiles.SnapshotStore].
func (st *Snapshots) Commit(ctx context.Context, c profiles.Commit) (profiles.MoveResult, error) {
	const op = "profiles.commit"
	var moved profiles.MoveResult
	write := st.db.writeLocked
	if c.Admit != nil {
		write = st.db.write // what is stored may be in several rows, which other commits change
	}
	err := write(ctx, op, func(tx *sql.Tx) error {
		if c.Session != nil {
			if err := addSession(ctx, tx, *c.Session, op); err != nil {
				return err
			}
		}
		// The lock is held until the end, so the sequences of a session's snapshots are in the
		// order of their commits.
		s, err := st.db.lockedSession(ctx, tx, c.Snapshot.SessionID, op)
		if err != nil {
			return err
		}
		if err := checkSession(s, c, op); err != nil {
			return err
		}
		if err := addSnapshot(ctx, tx, c.Snapshot); err != nil {
			return err
		}
		if err := admit(ctx, tx, c, s.KeyID); err != nil {
			return err
		}
		if err := st.db.useReservation(ctx, tx, c.Snapshot, op); err != nil {
			return err
		}
		if moved, err = st.move(ctx, tx, c.Snapshot, c.Move); err != nil {
			return err
		}
		switch {
		case c.End != nil:
			err = st.db.end(ctx, tx, s, *c.End, moved, op)
		case moved.Moved:
			_, err = tx.ExecContext(ctx, "UPDATE sessions SET base_version = ? WHERE session_id = ? AND ended_at = 0", moved.Version, c.Snapshot.SessionID)
		}
		if err != nil {
			return err
		}
		return queueNotices(ctx, tx, c.Snapshot.SessionID, c.Notices, op)
	})
	if err != nil {
		return profiles.MoveResult{}, err
	}
	return moved, nil
}

// admit calls the commit's Admit, after the snapshot was added.
func admit(ctx context.Context, tx *sql.Tx, c profiles.Commit, keyID string) error {
	if c.Admit == nil {
		return nil
	}
	user, err := storedByUser(ctx, tx, c.Snapshot.UserID)
	if err != nil {
		return err
	}
	key, err := storedByKey(ctx, tx, keyID)
	if err != nil {
		return err
	}
	if err := c.Admit(user, key); err != nil {
		return callerError{err}
	}
	return nil
}

// EndSession implements [profiles.SessionStore].
func (st *Sessions) EndSession(ctx context.Context, e profiles.End) error {
	const op = "profiles.end_session"
	return st.db.writeLocked(ctx, op, func(tx *sql.Tx) error {
		s, err := st.db.lockedSession(ctx, tx, e.SessionID, op)
		if err != nil {
			return err
		}
		if e.Check != nil {
			if err := e.Check(s); err != nil {
				return callerError{err}
			}
		}
		now, err := currentDefault(ctx, tx, s.UserID)
		if err != nil {
			return err
		}
		return st.db.end(ctx, tx, s, e, profiles.MoveResult{Version: now.Version}, op)
	})
}

// checkSession checks that all parts of a commit belong to one session and its user, and
// calls the commit's Check. A snapshot under another user's name would give that user a foreign login.
func checkSession(s profiles.Session, c profiles.Commit, op string) error {
	if s.UserID != c.Snapshot.UserID {
		return fault.New(fault.UserMismatch, op, "the snapshot and its session name different users")
	}
	if c.Check != nil {
		if err := c.Check(s); err != nil {
			return callerError{err}
		}
	}
	if c.End != nil && c.End.SessionID != s.ID {
		return fault.New(fault.Internal, op, "a commit can end only the session that it saves")
	}
	return nil
}

// move moves the user's default to the snapshot, if requested and if the default is still
// at the expected version.
func (st *Snapshots) move(ctx context.Context, tx *sql.Tx, s profiles.Snapshot, m *profiles.Move) (profiles.MoveResult, error) {
	now, err := currentDefault(ctx, tx, s.UserID)
	if err != nil || m == nil {
		return profiles.MoveResult{Version: now.Version}, err
	}
	if !m.MayReplace(now) || m.Renewal && now.Version != m.From {
		return profiles.MoveResult{Version: now.Version, Reason: describeCurrent(now)}, nil
	}
	next := profiles.Default{
		UserID: s.UserID, Version: now.Version + 1, SnapshotID: s.ID, SessionID: s.SessionID, MovedAt: st.now().UTC(),
	}
	if m.Renewal {
		next.Renews = cmp.Or(now.Renews, now.Version)
	}
	return profiles.MoveResult{Moved: true, Version: next.Version}, addDefault(ctx, tx, next)
}

// end writes how the session ended, which was as the transaction has read it. Package session
// decides which end may follow which. A session that moves keeps its claim, so that no other takes
// its environment. The claim of one that had ended before is of what resumes it.
func (h *handle) end(ctx context.Context, tx *sql.Tx, was profiles.Session, e profiles.End, moved profiles.MoveResult, op string) error {
	if was.EndedAt.IsZero() {
		leave := h.releaseSession
		if e.Reason.Code == profiles.ReasonMoved {
			leave = h.leaveEnvironment
		}
		if err := leave(ctx, tx, e.SessionID); err != nil {
			return err
		}
	}
	var outcome json.RawMessage
	if e.Outcome != nil {
		var err error
		if outcome, err = e.Outcome(moved); err != nil {
			return callerError{err}
		}
	}
	r, err := tx.ExecContext(ctx, "UPDATE sessions SET status = ?, reason_code = ?, reason = ?, ended_at = ?, outcome = ?, sealed = NULL WHERE session_id = ?",
		e.Status, e.Reason.Code, e.Reason.Text, stamp(e.EndedAt), blob(outcome), e.SessionID)
	if err := requireRow(r, err, fault.SessionNotFound, op); err != nil {
		return err
	}
	return queueNotices(ctx, tx, e.SessionID, e.Notices, op)
}
