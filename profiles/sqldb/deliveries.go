package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Deliveries is the store of the queue of webhooks. It implements [profiles.DeliveryStore].
type Deliveries struct{ db *handle }

var _ profiles.DeliveryStore = (*Deliveries)(nil)

const deliveryColumns = "sequence, delivery_id, session_id, user_id, url, operator, event, body, created_at, " +
	"state, attempts, resent, since, next_at, last_at, last_error"

func scanDelivery(r row) (profiles.Delivery, error) {
	var d profiles.Delivery
	var user []byte
	err := r.Scan(&d.Sequence, &d.ID, &d.SessionID, &user, &d.URL, &d.Operator, &d.Event, &d.Body, moment{&d.At},
		&d.State, &d.Attempts, &d.Resent, moment{&d.Since}, moment{&d.NextAt}, moment{&d.LastAt}, &d.LastError)
	d.UserID = string(user)
	return d, err
}

// addNotices queues notices of a session, in the transaction of the change that they
// report.
func addNotices(ctx context.Context, tx *sql.Tx, s profiles.Session, notices []profiles.Notice) error {
	for _, n := range notices {
		_, err := tx.ExecContext(ctx, "INSERT INTO deliveries (delivery_id, session_id, user_id, url, operator, event, body, created_at, "+
			"state, attempts, since, next_at, last_at, last_error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, 0, '')",
			n.ID, s.ID, []byte(s.UserID), n.URL, n.Operator, n.Event, n.Body, stamp(n.At), profiles.DeliveryPending, stamp(n.At), stamp(n.At))
		if err != nil {
			return err
		}
	}
	return nil
}

// queueNotices queues the notices of a change. It reads the session as the transaction
// has left it.
func queueNotices(ctx context.Context, tx *sql.Tx, id string, notices func(profiles.Session) []profiles.Notice, op string) error {
	if notices == nil {
		return nil
	}
	s, err := sessionByID(ctx, tx, id, op)
	if err != nil {
		return err
	}
	return addNotices(ctx, tx, s, notices(s))
}

// DueDeliveries implements [profiles.DeliveryStore].
func (st *Deliveries) DueDeliveries(ctx context.Context, now, beyond time.Time, limit int) ([]profiles.Delivery, error) {
	if st.db.leases != nil {
		return st.claimDeliveries(ctx, now, beyond, limit)
	}
	due, err := collect(ctx, st.db.reader, scanDelivery, "SELECT "+deliveryColumns+" FROM deliveries WHERE sequence IN "+
		"(SELECT MIN(sequence) FROM deliveries WHERE state = 'pending' AND (next_at <= ? OR next_at > ?) GROUP BY session_id, url) ORDER BY sequence LIMIT ?",
		stamp(now), stamp(beyond), limited(limit))
	return due, failure("profiles.due_deliveries", err)
}

// claimTime is how long a delivery is this node's. An attempt and its record take less.
const claimTime = 30 * time.Second

// claimDeliveries is DueDeliveries for a node: no other node gets the deliveries before they
// are finished, or claimTime has passed. Nodes that claim at once skip each other's.
func (st *Deliveries) claimDeliveries(ctx context.Context, now, beyond time.Time, limit int) (due []profiles.Delivery, err error) {
	some := false // a claim is a write, so most looks read first
	if err := st.db.reader.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM deliveries WHERE state = 'pending' AND claimed_until < "+clock+
		" AND (next_at <= ? OR next_at > ?))", stamp(now), stamp(beyond)).Scan(&some); err != nil || !some {
		return nil, failure("profiles.due_deliveries", err)
	}
	err = st.db.write(ctx, "profiles.due_deliveries", func(tx *sql.Tx) (err error) {
		due, err = collect(ctx, tx, scanDelivery, "UPDATE deliveries SET claimed_until = "+clock+" + ? WHERE sequence IN "+
			"(SELECT sequence FROM deliveries WHERE sequence IN "+
			"(SELECT MIN(sequence) FROM deliveries WHERE state = 'pending' AND (next_at <= ? OR next_at > ?) GROUP BY session_id, url) "+
			"AND claimed_until < "+clock+" ORDER BY sequence LIMIT ? FOR UPDATE SKIP LOCKED) RETURNING "+deliveryColumns,
			claimTime, stamp(now), stamp(beyond), limited(limit))
		return err
	})
	slices.SortFunc(due, func(a, b profiles.Delivery) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return due, err
}

// NextDelivery implements [profiles.DeliveryStore].
func (st *Deliveries) NextDelivery(ctx context.Context, now time.Time) (time.Time, error) {
	var at time.Time
	err := st.db.reader.QueryRowContext(ctx, "SELECT MIN(next_at) FROM deliveries WHERE state = 'pending' AND next_at > ?", stamp(now)).Scan(moment{&at})
	return at, failure("profiles.next_delivery", err)
}

// CountDeliveries implements [profiles.DeliveryStore].
func (st *Deliveries) CountDeliveries(ctx context.Context) (map[profiles.DeliveryState]int, error) {
	counts := map[profiles.DeliveryState]int{}
	_, err := collect(ctx, st.db.reader, func(r row) (n int, err error) {
		var state profiles.DeliveryState
		if err = r.Scan(&state, &n); err == nil && n > 0 {
			counts[state] = n
		}
		return n, err
	}, "SELECT 'pending', COUNT(*) FROM deliveries WHERE state = 'pending' UNION ALL SELECT 'failed', COUNT(*) FROM deliveries WHERE state = 'failed'")
	return counts, failure("profiles.count_deliveries", err)
}

// FinishAttempt implements [profiles.DeliveryStore].
func (st *Deliveries) FinishAttempt(ctx context.Context, d profiles.Delivery, a profiles.Attempt) error {
	return st.db.write(ctx, "profiles.finish_attempt", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE deliveries SET state = ?, attempts = attempts + 1, next_at = ?, last_at = ?, last_error = ?, claimed_until = 0 "+
			"WHERE delivery_id = ? AND state = 'pending' AND attempts = ? AND since = ?",
			a.State, stamp(a.NextAt), stamp(a.At), a.Error, d.ID, d.Attempts, stamp(d.Since))
		return err
	})
}

// Delivery implements [profiles.DeliveryStore].
func (st *Deliveries) Delivery(ctx context.Context, id string) (profiles.Delivery, error) {
	return deliveryByID(ctx, st.db.reader, id, "profiles.delivery")
}

func deliveryByID(ctx context.Context, q querier, id, op string) (profiles.Delivery, error) {
	d, err := scanDelivery(q.QueryRowContext(ctx, "SELECT "+deliveryColumns+" FROM deliveries WHERE delivery_id = ?", id))
	return d, orMissing(err, fault.NotFound, op)
}

// DeliveryPage implements [profiles.DeliveryStore].
func (st *Deliveries) DeliveryPage(ctx context.Context, f profiles.DeliveryFilter) ([]profiles.Delivery, string, error) {
	const op = "profiles.delivery_page"
	var where []string
	var args []any
	if f.UserID != "" {
		where, args = append(where, "user_id = ?"), append(args, []byte(f.UserID))
	}
	if !f.Operator {
		where = append(where, "NOT operator")
	}
	if f.StartAfter != "" {
		// An ID of another user is not a valid cursor, as in the other lists.
		var before int64
		query := "SELECT sequence FROM deliveries WHERE " + strings.Join(append(where, "delivery_id = ?"), " AND ")
		if err := st.db.reader.QueryRowContext(ctx, query, append(args[:len(args):len(args)], f.StartAfter)...).Scan(&before); err != nil {
			return nil, "", badCursor(err, op)
		}
		where, args = append(where, "sequence < ?"), append(args, before)
	}
	if f.State != "" {
		where, args = append(where, "state = ?"), append(args, f.State)
	}
	query := "SELECT " + deliveryColumns + " FROM deliveries"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	limit := limited(f.Limit)
	if f.Limit > 0 {
		limit++ // one more row shows whether another page follows
	}
	page, err := collect(ctx, st.db.reader, scanDelivery, query+" ORDER BY sequence DESC LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, "", failure(op, err)
	}
	if f.Limit > 0 && len(page) > f.Limit {
		return page[:f.Limit], page[f.Limit-1].ID, nil
	}
	return page, "", nil
}

// Resend implements [profiles.DeliveryStore].
func (st *Deliveries) Resend(ctx context.Context, id string, at time.Time) (profiles.Delivery, error) {
	const op = "profiles.resend"
	var d profiles.Delivery
	err := st.db.write(ctx, op, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "UPDATE deliveries SET state = 'pending', resent = attempts, since = ?, next_at = ? WHERE delivery_id = ?", stamp(at), stamp(at), id)
		if err := requireRow(r, err, fault.NotFound, op); err != nil {
			return err
		}
		d, err = deliveryByID(ctx, tx, id, op)
		return err
	})
	return d, err
}

// ExpireDeliveries implements [profiles.DeliveryStore].
func (st *Deliveries) ExpireDeliveries(ctx context.Context, before time.Time) error {
	return st.db.write(ctx, "profiles.expire_deliveries", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM deliveries WHERE state <> 'pending' AND last_at < ?", stamp(before))
		return err
	})
}
