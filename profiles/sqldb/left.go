package sqldb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/stasisd/stasis/profiles"
)

// Left is the store of what nodes may have of sessions that were taken over from them. It
// implements [profiles.LeftStore].
type Left struct{ db *handle }

var _ profiles.LeftStore = (*Left)(nil)

const leftColumns = "node_id, run_dir, session_id, ended_at, sealed, restart"

func scanLeft(r row) (profiles.LeftSession, error) {
	var l profiles.LeftSession
	return l, r.Scan(&l.NodeID, &l.RunDir, &l.SessionID, moment{&l.EndedAt}, &l.Sealed, &l.Restart)
}

// EndStranded implements [profiles.NodeStore].
func (st *Nodes) EndStranded(ctx context.Context, e profiles.StrandedEnd) (done bool, err error) {
	const op = "profiles.end_stranded"
	err = st.db.write(ctx, op, func(tx *sql.Tx) error {
		done = false
		s, err := sessionByID(ctx, tx, e.SessionID, op)
		if err != nil || !s.EndedAt.IsZero() || s.NodeID == "" {
			return err
		}
		// The lock makes a node that joins now wait, and finds one that has joined meanwhile.
		var number int64
		err = tx.QueryRowContext(ctx, "SELECT number FROM nodes WHERE node_id = ? FOR KEY SHARE", s.NodeID).Scan(&number)
		if err != nil && !errors.Is(err, sql.ErrNoRows) || number != 0 {
			return err
		}
		if s.RunDir != "" {
			_, err := tx.ExecContext(ctx, "INSERT INTO left_sessions ("+leftColumns+") VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
				s.NodeID, s.RunDir, s.ID, stamp(e.EndedAt), s.Sealed, e.Restart)
			if err != nil {
				return err
			}
		}
		open, err := collect(ctx, tx, scanRun, "SELECT "+runColumns+" FROM runs WHERE session_id = ? AND status = 'running'", s.ID)
		if err != nil {
			return err
		}
		for _, run := range open {
			if _, err := st.db.endRun(ctx, tx, e.Run(run), e.Keep, op); err != nil {
				return err
			}
		}
		now, err := currentDefault(ctx, tx, s.UserID)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM answers WHERE status = 0 AND body IS NULL AND node_id = ?", s.NodeID); err != nil {
			return err
		}
		done = true
		return st.db.end(ctx, tx, s, e.End, profiles.MoveResult{Version: now.Version}, op)
	})
	return done && err == nil, err
}

// LeftSessions implements [profiles.LeftStore].
func (st *Left) LeftSessions(ctx context.Context, nodeID string) ([]profiles.LeftSession, error) {
	all, err := collect(ctx, st.db.reader, scanLeft, "SELECT "+leftColumns+" FROM left_sessions WHERE node_id = ? ORDER BY run_dir", nodeID)
	return all, failure("profiles.left_sessions", err)
}

// AddLeft implements [profiles.LeftStore].
func (st *Left) AddLeft(ctx context.Context, l profiles.LeftSession) error {
	return st.db.write(ctx, "profiles.add_left", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO left_sessions ("+leftColumns+") VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (node_id, run_dir) DO UPDATE SET ended_at = excluded.ended_at",
			l.NodeID, l.RunDir, l.SessionID, stamp(l.EndedAt), l.Sealed, l.Restart)
		return err
	})
}

// ForgetLeft implements [profiles.LeftStore].
func (st *Left) ForgetLeft(ctx context.Context, nodeID, runDir string) error {
	return st.db.write(ctx, "profiles.forget_left", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM left_sessions WHERE node_id = ? AND run_dir = ? AND NOT restart", nodeID, runDir)
		return err
	})
}

// Restarts implements [profiles.LeftStore].
func (st *Left) Restarts(ctx context.Context) ([]profiles.LeftSession, error) {
	all, err := collect(ctx, st.db.reader, scanLeft, "SELECT "+leftColumns+" FROM left_sessions WHERE restart ORDER BY session_id")
	return all, failure("profiles.restarts", err)
}

// SetRestart implements [profiles.LeftStore].
func (st *Left) SetRestart(ctx context.Context, l profiles.LeftSession, restart bool) (set bool, err error) {
	const op = "profiles.set_restart"
	err = st.db.write(ctx, op, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "UPDATE left_sessions SET restart = ? WHERE node_id = ? AND run_dir = ? AND restart <> ?", restart, l.NodeID, l.RunDir, restart)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		set = n == 1
		return err
	})
	return set && err == nil, err
}
