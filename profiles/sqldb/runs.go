package sqldb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Runs is the store of runs and their events. It implements [profiles.RunStore] and
// [profiles.EventStore].
type Runs struct{ db *handle }

var (
	_ profiles.RunStore   = (*Runs)(nil)
	_ profiles.EventStore = (*Runs)(nil)
)

const runColumns = "run_id, session_id, number, status, cause, started_at, ended_at"

func scanRun(r row) (profiles.Run, error) {
	var run profiles.Run
	return run, r.Scan(&run.ID, &run.SessionID, &run.Number, &run.Status, &run.Cause, moment{&run.StartedAt}, moment{&run.EndedAt})
}

func runByID(ctx context.Context, q querier, id, op string) (profiles.Run, error) {
	run, err := scanRun(q.QueryRowContext(ctx, "SELECT "+runColumns+" FROM runs WHERE run_id = ?", id))
	return run, orMissing(err, fault.RunNotFound, op)
}

// BeginRun implements [profiles.RunStore].
func (st *Runs) BeginRun(ctx context.Context, asked profiles.Run) (r profiles.Run, err error) {
	const op = "profiles.begin_run"
	err = st.db.writeLocked(ctx, op, func(tx *sql.Tx) error { // two runs of a session cannot have one number
		r, err = scanRun(tx.QueryRowContext(ctx, "INSERT INTO runs ("+runColumns+") SELECT ?, session_id, "+
			"(SELECT COALESCE(MAX(number), 0) + 1 FROM runs WHERE runs.session_id = sessions.session_id), ?, '', ?, 0 FROM sessions WHERE session_id = ? RETURNING "+runColumns,
			asked.ID, profiles.RunRunning, stamp(asked.StartedAt), asked.SessionID))
		return orMissing(err, fault.SessionNotFound, op)
	})
	if err != nil {
		return profiles.Run{}, err
	}
	return r, nil
}

// EndRun implements [profiles.RunStore].
func (st *Runs) EndRun(ctx context.Context, e profiles.RunEnd, keep profiles.EventBounds) (profiles.Run, error) {
	const op = "profiles.end_run"
	var run profiles.Run
	err := st.db.writeLocked(ctx, op, func(tx *sql.Tx) (err error) {
		run, err = st.db.endRun(ctx, tx, e, keep, op)
		return err
	})
	if err != nil {
		return profiles.Run{}, err
	}
	return run, nil
}

// endRun ends a run, unless it has ended, and returns it.
func (h *handle) endRun(ctx context.Context, tx *sql.Tx, e profiles.RunEnd, keep profiles.EventBounds, op string) (profiles.Run, error) {
	run, x, err := h.openRun(ctx, tx, e.RunID, op)
	if err != nil || run.Status != profiles.RunRunning {
		return run, err
	}
	if _, err := x.add(ctx, tx, e.RunID, e.Last, keep); err != nil {
		return run, err
	}
	e.EndedAt = notBefore(run.StartedAt, e.EndedAt)
	return scanRun(tx.QueryRowContext(ctx, "UPDATE runs SET status = ?, cause = ?, ended_at = ?, first_sequence = ?, next_sequence = ?, event_bytes = ? WHERE run_id = ? RETURNING "+runColumns,
		e.Status, e.Cause, stamp(e.EndedAt), x.first, x.next, x.bytes, e.RunID))
}

// openRun returns a run and the extent of its events, and locks it.
func (h *handle) openRun(ctx context.Context, tx *sql.Tx, id, op string) (run profiles.Run, x extent, err error) {
	err = tx.QueryRowContext(ctx, "SELECT "+runColumns+", first_sequence, next_sequence, event_bytes FROM runs WHERE run_id = ?"+h.locking(), id).
		Scan(&run.ID, &run.SessionID, &run.Number, &run.Status, &run.Cause, moment{&run.StartedAt}, moment{&run.EndedAt}, &x.first, &x.next, &x.bytes)
	return run, x, orMissing(err, fault.RunNotFound, op)
}

// Run implements [profiles.RunStore].
func (st *Runs) Run(ctx context.Context, id string) (profiles.Run, error) {
	return runByID(ctx, st.db.reader, id, "profiles.run")
}

// Runs implements [profiles.RunStore].
func (st *Runs) Runs(ctx context.Context, sessionID string) ([]profiles.Run, error) {
	all, err := collect(ctx, st.db.reader, scanRun, "SELECT "+runColumns+" FROM runs WHERE session_id = ? ORDER BY number", sessionID)
	return all, failure("profiles.runs", err)
}

// OpenRuns implements [profiles.RunStore].
func (st *Runs) OpenRuns(ctx context.Context) ([]profiles.Run, error) {
	// The status must be a literal in the statement; otherwise SQLite does not use the
	// index of open runs.
	all, err := collect(ctx, st.db.reader, scanRun, "SELECT "+runColumns+" FROM runs WHERE status = 'running' ORDER BY run_id")
	return all, failure("profiles.open_runs", err)
}

// AddEvents implements [profiles.EventStore].
func (st *Runs) AddEvents(ctx context.Context, runID string, events []profiles.Event, keep profiles.EventBounds) ([]profiles.Event, error) {
	const op = "profiles.add_events"
	var added []profiles.Event
	err := st.db.writeLocked(ctx, op, func(tx *sql.Tx) error {
		run, x, err := st.db.openRun(ctx, tx, runID, op)
		if err != nil {
			return err
		}
		if run.Status != profiles.RunRunning {
			return fault.New(fault.SessionNotRunning, op, "the run has ended")
		}
		if added, err = x.add(ctx, tx, runID, events, keep); err != nil {
			return err
		}
		return x.write(ctx, tx, runID)
	})
	if err != nil {
		return nil, err
	}
	return added, nil
}

// extent describes the stored events of a run: those from first up to next, and their
// size.
type extent struct{ first, next, bytes int64 }

// add numbers events, writes them and trims those over the bounds. The caller writes the extent.
func (x *extent) add(ctx context.Context, tx *sql.Tx, runID string, events []profiles.Event, keep profiles.EventBounds) ([]profiles.Event, error) {
	added := make([]profiles.Event, 0, len(events))
	for _, e := range events {
		e.RunID, e.Sequence, e.At = runID, x.next, e.At.UTC()
		x.next, x.bytes, added = x.next+1, x.bytes+e.Size(), append(added, e)
	}
	err := insertRows(ctx, tx, "INSERT INTO events (run_id, sequence, type, at, data, sealed, size)", added, func(e *profiles.Event) []any {
		return []any{runID, e.Sequence, e.Type, stamp(e.At), blob(e.Data), e.Sealed, e.Size()}
	})
	if err != nil {
		return nil, err
	}
	return added, x.trim(ctx, tx, runID, keep)
}

// trim subtracts the oldest events that are over the bounds, and deletes them.
func (x *extent) trim(ctx context.Context, tx *sql.Tx, runID string, keep profiles.EventBounds) error {
	over := func() bool {
		return x.first < x.next-1 && (keep.Count > 0 && x.next-x.first > keep.Count || keep.Bytes > 0 && x.bytes > keep.Bytes)
	}
	if !over() {
		return nil
	}
	rows, err := tx.QueryContext(ctx, "SELECT size FROM events WHERE run_id = ? ORDER BY sequence", runID)
	if err != nil {
		return err
	}
	for over() && rows.Next() {
		var size int64
		if err := rows.Scan(&size); err != nil {
			return errors.Join(err, rows.Close())
		}
		x.first, x.bytes = x.first+1, x.bytes-size
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM events WHERE run_id = ? AND sequence < ?", runID, x.first)
	return err
}

func (x *extent) write(ctx context.Context, tx *sql.Tx, runID string) error {
	_, err := tx.ExecContext(ctx, "UPDATE runs SET first_sequence = ?, next_sequence = ?, event_bytes = ? WHERE run_id = ?",
		x.first, x.next, x.bytes, runID)
	return err
}
