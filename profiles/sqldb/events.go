package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Events implements [profiles.EventStore]. One statement reads the run and its events, so
// that an event trimmed meanwhile is either returned or reported as a gap.
func (st *Runs) Events(ctx context.Context, runID string, after int64, limit int) (page profiles.EventPage, err error) {
	const op = "profiles.events"
	rows, err := st.db.reader.QueryContext(ctx, `SELECT first_sequence, next_sequence, sequence, type, at, data, sealed
		FROM runs LEFT JOIN events ON events.run_id = runs.run_id AND sequence > ?
		WHERE runs.run_id = ? ORDER BY sequence LIMIT ?`, after, runID, limited(limit))
	if err != nil {
		return page, failure(op, err)
	}
	defer func() { err = errors.Join(err, failure(op, rows.Close())) }()
	for size := int64(0); size < profiles.MaxEventPage && rows.Next(); {
		var sequence sql.NullInt64
		var kind sql.NullString
		e := profiles.Event{RunID: runID}
		var data []byte
		if err := rows.Scan(&page.First, &page.LatestExclusive, &sequence, &kind, moment{&e.At}, &data, &e.Sealed); err != nil {
			return profiles.EventPage{}, failure(op, err)
		}
		if sequence.Valid {
			e.Sequence, e.Type, e.Data = sequence.Int64, kind.String, data
			page.Events, size = append(page.Events, e), size+e.Size()
		}
	}
	switch err := rows.Err(); {
	case err != nil:
		return profiles.EventPage{}, failure(op, err)
	case page.LatestExclusive == 0:
		return page, fault.New(fault.RunNotFound, op, "%s", fault.RunNotFound.Text())
	case after < 0 || after >= page.LatestExclusive:
		return profiles.EventPage{}, fault.New(fault.InvalidField, op, "after: must be from 0 to %d, the last event of the run", page.LatestExclusive-1)
	}
	page.NextAfter = max(after, page.First-1)
	if n := len(page.Events); n > 0 {
		page.NextAfter = page.Events[n-1].Sequence
	}
	page.Gap = page.First > after+1
	page.HasMore = page.NextAfter+1 < page.LatestExclusive
	return page, nil
}

// ExpireEvents implements [profiles.EventStore]. If the clock was set back, a later event
// may have an earlier time. So a run is trimmed only up to the first event that is young
// enough, and the rest has no gap.
func (st *Runs) ExpireEvents(ctx context.Context, before time.Time) error {
	const op = "profiles.expire_events"
	return st.db.write(ctx, op, func(tx *sql.Tx) error {
		runs, err := collect(ctx, tx, func(r row) (id string, err error) { return id, r.Scan(&id) },
			"SELECT DISTINCT run_id FROM events WHERE at < ?", stamp(before))
		if err != nil {
			return err
		}
		for _, id := range runs {
			var x extent
			err := tx.QueryRowContext(ctx, `SELECT COALESCE((SELECT MIN(sequence) FROM events WHERE run_id = runs.run_id AND at >= ?), next_sequence),
				next_sequence FROM runs WHERE run_id = ?`, stamp(before), id).Scan(&x.first, &x.next)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, "DELETE FROM events WHERE run_id = ? AND sequence < ?", id, x.first); err != nil {
				return err
			}
			if err := tx.QueryRowContext(ctx, "SELECT COALESCE(SUM(size), 0) FROM events WHERE run_id = ?", id).Scan(&x.bytes); err != nil {
				return err
			}
			if err := x.write(ctx, tx, id); err != nil {
				return err
			}
		}
		return nil
	})
}
