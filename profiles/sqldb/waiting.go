package sqldb

import (
	"context"
	"database/sql"
	"time"

	"github.com/stasisd/stasis/profiles"
)

var _ profiles.WaitingStore = (*Claims)(nil)

// holds is a condition: the node that wrote the row w has a valid lease, the one it had then.
const holds = "EXISTS (SELECT 1 FROM nodes n WHERE n.node_id = w.node_id AND n.number = w.number AND n.leased_until > " + clock + ")"

// former is a condition: the create had its turn, which is no longer fresh.
const former = "turn > 0 AND paused_until <= " + clock

// BeginWaiting implements [profiles.WaitingStore].
func (st *Claims) BeginWaiting(ctx context.Context, w profiles.WaitingCreate, pause time.Duration) (since time.Time, err error) {
	err = st.db.write(ctx, "profiles.begin_waiting", func(tx *sql.Tx) error {
		node, number := st.db.own()
		// The clock is read first, so that what is recorded is what is returned.
		var now int64
		if err := tx.QueryRowContext(ctx, "SELECT "+clock).Scan(&now); err != nil {
			return err
		}
		since = w.Since
		if since.IsZero() {
			since = time.Unix(0, now).UTC()
		}
		paused := int64(0)
		if pause > 0 {
			paused = now + int64(pause)
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO waiting_creates (waiter_id, node_id, number, user_id, key_id, engine, chrome, restores, most_of_user, most_of_key, since, paused_until, turn) "+
			"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT (waiter_id) DO UPDATE SET paused_until = excluded.paused_until, turn = 0",
			w.ID, node, number, []byte(w.UserID), w.KeyID, w.Engine, w.Chrome, w.Restores, most(w.MostOfUser), most(w.MostOfKey), stamp(since), paused)
		return err
	})
	return since, err
}

// most returns a quota as it is stored.
func most(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// TakeTurn implements [profiles.WaitingStore]. Of the turns of a key that are no longer fresh only the
// last one is kept, and none if no other create of the user waits.
func (st *Claims) TakeTurn(ctx context.Context, id string, fresh time.Duration) (taken bool, err error) {
	err = st.db.write(ctx, "profiles.take_turn", func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "UPDATE waiting_creates SET turn = (SELECT COALESCE(MAX(turn), 0) + 1 FROM waiting_creates), paused_until = "+clock+" + ? WHERE waiter_id = ? AND turn = 0", int64(fresh), id)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		if taken = err == nil && n == 1; !taken {
			return err
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM waiting_creates AS w WHERE "+former+" AND EXISTS (SELECT 1 FROM waiting_creates l WHERE l.waiter_id = ? "+
			"AND l.user_id = w.user_id AND l.key_id = w.key_id AND l.turn > w.turn)", id)
		if err != nil {
			return err
		}
		return forgetTurns(ctx, tx)
	})
	return taken && err == nil, err
}

// EndWaiting implements [profiles.WaitingStore].
func (st *Claims) EndWaiting(ctx context.Context, id string) error {
	return st.db.write(ctx, "profiles.end_waiting", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM waiting_creates WHERE waiter_id = ?", id); err != nil {
			return err
		}
		return forgetTurns(ctx, tx)
	})
}

// forgetTurns removes the turns of users for whom nothing waits.
func forgetTurns(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM waiting_creates AS d WHERE "+former+" AND NOT EXISTS (SELECT 1 FROM waiting_creates w WHERE w.user_id = d.user_id AND w.turn = 0)")
	return err
}

// liveOf returns an expression for the sessions of a user or a key, if a quota limits them.
func liveOf(quota, column, value string) string {
	return "CASE WHEN " + quota + " < 0 THEN 0 ELSE (SELECT COUNT(*) FROM session_claims c WHERE c." + column + " = " + value + " AND c.limits <> '' AND " + leased + ") END"
}

// Waiting implements [profiles.WaitingStore].
func (st *Claims) Waiting(ctx context.Context) ([]profiles.WaitingCreate, error) {
	all, err := collect(ctx, st.db.reader, scanWaiting, "SELECT waiter_id, user_id, key_id, engine, chrome, restores, most_of_user, most_of_key, since, turn, "+
		liveOf("w.most_of_user", "quota_user", "w.user_id")+", "+liveOf("w.most_of_key", "quota_key", "w.key_id")+", paused_until > "+clock+
		" FROM waiting_creates w WHERE turn > 0 OR "+holds+" ORDER BY since, waiter_id")
	return all, failure("profiles.waiting", err)
}

func scanWaiting(r row) (profiles.WaitingCreate, error) {
	var w profiles.WaitingCreate
	var user []byte
	var ofUser, ofKey int64
	var paused bool
	err := r.Scan(&w.ID, &user, &w.KeyID, &w.Engine, &w.Chrome, &w.Restores, &ofUser, &ofKey, moment{&w.Since}, &w.Turn, &w.OfUser, &w.OfKey, &paused)
	w.UserID, w.Paused, w.Fresh = string(user), paused && w.Turn == 0, paused && w.Turn > 0
	if ofUser >= 0 {
		w.MostOfUser = &ofUser
	}
	if ofKey >= 0 {
		w.MostOfKey = &ofKey
	}
	return w, err
}
