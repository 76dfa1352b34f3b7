package sqldb

import (
	"context"
	"database/sql"
	"errors"

	"github.com/stasisd/stasis/profiles"
)

// SealedEvents implements [profiles.EventStore], by run and sequence.
func (st *Runs) SealedEvents(ctx context.Context, after profiles.SealedEvent, limit int) (page []profiles.SealedEvent, err error) {
	const op = "profiles.sealed_events"
	rows, err := st.db.reader.QueryContext(ctx, `SELECT run_id, sequence, sealed FROM events
		WHERE (run_id, sequence) > (?, ?) AND sealed IS NOT NULL ORDER BY run_id, sequence LIMIT ?`,
		after.RunID, after.Sequence, limited(limit))
	if err != nil {
		return nil, failure(op, err)
	}
	defer func() { err = errors.Join(err, failure(op, rows.Close())) }()
	for size := 0; size < profiles.MaxEventPage && rows.Next(); {
		var e profiles.SealedEvent
		if err := rows.Scan(&e.RunID, &e.Sequence, &e.Sealed); err != nil {
			return nil, failure(op, err)
		}
		page, size = append(page, e), size+len(e.Sealed)
	}
	return page, failure(op, rows.Err())
}

// ResealEvents implements [profiles.EventStore].
func (st *Runs) ResealEvents(ctx context.Context, events []profiles.SealedEvent) (written int, err error) {
	err = st.db.write(ctx, "profiles.reseal_events", func(tx *sql.Tx) error {
		written = 0
		for _, e := range events {
			if e.Replacement == nil {
				continue
			}
			more := len(e.Replacement) - len(e.Sealed)
			done, err := tx.ExecContext(ctx, "UPDATE events SET sealed = ?, size = size + ? WHERE run_id = ? AND sequence = ? AND sealed = ?",
				e.Replacement, more, e.RunID, e.Sequence, e.Sealed)
			if err != nil {
				return err
			}
			n, err := done.RowsAffected()
			if err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			written++
			if _, err := tx.ExecContext(ctx, "UPDATE runs SET event_bytes = event_bytes + ? WHERE run_id = ?", more, e.RunID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return written, nil
}
