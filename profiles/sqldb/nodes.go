package sqldb

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Nodes is the store of nodes. It implements [profiles.NodeStore].
type Nodes struct{ db *handle }

var _ profiles.NodeStore = (*Nodes)(nil)

// lease is what each transaction of a node checks.
type lease struct {
	id     string
	number int64
}

// clock is the server's time in nanoseconds since 1970, also within a transaction.
const clock = "(extract(epoch from clock_timestamp()) * 1000000000)::bigint"

const nodeColumns = "node_id, number, url, facts, status, draining, started_at, CASE WHEN number = 0 THEN 0 ELSE leased_until - " + clock + " END, " + clock

func scanNode(r row) (profiles.Node, error) {
	var n profiles.Node
	var facts, status []byte
	err := r.Scan(&n.ID, &n.Number, &n.URL, &facts, &status, &n.Draining, moment{&n.StartedAt}, &n.Left, moment{&n.Clock})
	n.Facts, n.Status = facts, status
	return n, err
}

// check locks the node's row, and returns node_lost if another node has changed the number.
// The lock is the weakest: only a change of the number waits for it.
func (l *lease) check(ctx context.Context, tx *sql.Tx, op string) error {
	if l == nil {
		return nil
	}
	var one int
	err := tx.QueryRowContext(ctx, "SELECT 1 FROM nodes WHERE node_id = ? AND number = ? FOR KEY SHARE", l.id, l.number).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return fault.New(fault.NodeLost, op, "%s", fault.NodeLost.Text())
	}
	return err
}

// nodeID returns the ID of the node, or "".
func (h *handle) nodeID() string {
	if l := h.lease.Load(); l != nil {
		return l.id
	}
	return ""
}

// closeLeases closes the connection for the lease, if there is one.
func (h *handle) closeLeases() error {
	if h.leases == nil {
		return nil
	}
	return h.leases.Close()
}

// Join implements [profiles.NodeStore].
func (st *Nodes) Join(ctx context.Context, n profiles.Node) (profiles.Node, error) {
	const op = "profiles.join"
	if st.db.leases == nil {
		return n, fault.New(fault.Config, op, "--node-url: nodes share a catalogue in PostgreSQL; give --database postgres://…")
	}
	// A statement alone is READ COMMITTED: it waits for the transactions of the node's former
	// process, and does not conflict with them.
	joined, err := scanNode(st.db.leases.QueryRowContext(ctx, "INSERT INTO nodes (node_id, number, url, facts, status, draining, started_at, leased_until) "+
		"VALUES (?, nextval('node_numbers'), ?, ?, ?, false, ?, "+clock+" + ?) ON CONFLICT (node_id) DO UPDATE SET "+
		"number = excluded.number, url = excluded.url, facts = excluded.facts, status = excluded.status, draining = false, "+
		"started_at = excluded.started_at, leased_until = excluded.leased_until "+
		"WHERE nodes.number = 0 OR nodes.leased_until <= "+clock+" OR "+home("nodes")+" IS NOT DISTINCT FROM "+home("excluded")+" RETURNING "+nodeColumns,
		n.ID, n.URL, document(n.Facts), document(n.Status), stamp(n.StartedAt), st.db.leaseTime))
	if errors.Is(err, sql.ErrNoRows) {
		return n, st.inUse(ctx, n.ID, op)
	}
	if err != nil {
		return n, failure(op, err)
	}
	st.db.lease.Store(&lease{joined.ID, joined.Number})
	return joined, nil
}

// home returns an expression for the home in the facts of a row.
func home(row string) string { return "convert_from(" + row + ".facts, 'UTF8')::json ->> 'home'" }

// inUse returns the error for a node whose ID another process uses.
func (st *Nodes) inUse(ctx context.Context, id, op string) error {
	var url string
	if err := st.db.leases.QueryRowContext(ctx, "SELECT url FROM nodes WHERE node_id = ?", id).Scan(&url); err != nil {
		return failure(op, orMissing(err, fault.NodeNotFound, op))
	}
	return fault.New(fault.NodeInUse, op, "--node-id: the daemon at %s is node %s and has a valid lease; give each node its own --node-id and --data-dir, and copy no data directory", url, id)
}

// Renew implements [profiles.NodeStore].
func (st *Nodes) Renew(ctx context.Context, status json.RawMessage) (profiles.Node, error) {
	const op = "profiles.renew"
	l := st.db.lease.Load()
	if l == nil {
		return profiles.Node{}, fault.New(fault.Internal, op, "the node has not joined")
	}
	n, err := scanNode(st.db.leases.QueryRowContext(ctx, "UPDATE nodes SET status = ?, leased_until = "+clock+" + ? "+
		"WHERE node_id = ? AND number = ? RETURNING "+nodeColumns, document(status), st.db.leaseTime, l.id, l.number))
	if errors.Is(err, sql.ErrNoRows) {
		return n, fault.New(fault.NodeLost, op, "%s", fault.NodeLost.Text())
	}
	return n, failure(op, err)
}

// Leave implements [profiles.NodeStore].
func (st *Nodes) Leave(ctx context.Context) error {
	const op = "profiles.leave"
	l := st.db.lease.Load()
	if l == nil {
		return nil
	}
	_, err := st.db.leases.ExecContext(ctx, "UPDATE nodes SET number = 0, leased_until = 0 WHERE node_id = ? AND number = ?", l.id, l.number)
	return failure(op, err)
}

// Nodes implements [profiles.NodeStore].
func (st *Nodes) Nodes(ctx context.Context) ([]profiles.Node, error) {
	if !st.db.remote {
		return nil, nil
	}
	all, err := collect(ctx, st.db.reader, scanNode, "SELECT "+nodeColumns+" FROM nodes ORDER BY node_id")
	return all, failure("profiles.nodes", err)
}

// NodeOf implements [profiles.NodeStore].
func (st *Nodes) NodeOf(ctx context.Context, sessionID string) (p profiles.Place, err error) {
	const op = "profiles.node_of"
	err = st.db.reader.QueryRowContext(ctx, "SELECT node_id, ended_at <> 0, reason_code = 'moved' AND ended_at <> 0 FROM sessions WHERE session_id = ?", sessionID).
		Scan(&p.NodeID, &p.Ended, &p.Moving)
	return p, failure(op, orMissing(err, fault.SessionNotFound, op))
}

// Moving implements [profiles.NodeStore]. The condition is that of an index.
func (st *Nodes) Moving(ctx context.Context) ([]profiles.Session, error) {
	all, err := collect(ctx, st.db.reader, scanSession, "SELECT "+sessionColumns+" FROM sessions WHERE reason_code = 'moved' AND ended_at <> 0 ORDER BY session_id")
	return all, failure("profiles.moving", err)
}

// Drain implements [profiles.NodeStore].
func (st *Nodes) Drain(ctx context.Context, id string, draining bool) error {
	const op = "profiles.drain"
	return st.db.write(ctx, op, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "UPDATE nodes SET draining = ? WHERE node_id = ?", draining, id)
		return requireRow(r, err, fault.NodeNotFound, op)
	})
}

// TakeOver implements [profiles.NodeStore].
func (st *Nodes) TakeOver(ctx context.Context, id string, number int64) (taken bool, err error) {
	const op = "profiles.take_over"
	if !st.db.remote {
		return false, fault.New(fault.Config, op, "a catalogue in SQLite has no nodes")
	}
	err = st.db.write(ctx, op, func(tx *sql.Tx) error {
		r, err := tx.ExecContext(ctx, "UPDATE nodes SET number = 0, leased_until = 0 WHERE node_id = ? AND number = ? AND number <> 0 AND leased_until < "+clock+
			" AND clock_timestamp() - pg_postmaster_start_time() > make_interval(secs => ?)", id, number, st.db.leaseTime.Seconds())
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		taken = n == 1
		return err
	})
	return taken && err == nil, err
}

// RemoveNode implements [profiles.NodeStore].
func (st *Nodes) RemoveNode(ctx context.Context, id string) error {
	const op = "profiles.remove_node"
	return st.db.write(ctx, op, func(tx *sql.Tx) error {
		var number, live int64
		err := tx.QueryRowContext(ctx, "SELECT number, (SELECT COUNT(*) FROM sessions s WHERE s.node_id = n.node_id AND s.ended_at = 0) FROM nodes n WHERE node_id = ?", id).Scan(&number, &live)
		if err != nil {
			return orMissing(err, fault.NodeNotFound, op)
		}
		if number != 0 || live > 0 {
			return fault.New(fault.NodeInUse, op, "node %s has a lease, or %d sessions that have not ended; drain it and stop its daemon first", id, live)
		}
		_, err = tx.ExecContext(ctx, "DELETE FROM nodes WHERE node_id = ?", id)
		return err
	})
}

// Stranded implements [profiles.NodeStore]. All nodes ask often, and the live sessions of nodes
// with a lease are many: so it begins with the nodes that have none, for which there is an index
// of sessions. A node with live sessions has a row (see [Nodes.RemoveNode]).
func (st *Nodes) Stranded(ctx context.Context) ([]profiles.Session, error) {
	all, err := collect(ctx, st.db.reader, scanSession, "SELECT "+sessionColumns+" FROM sessions WHERE ended_at = 0 AND node_id <> '' "+
		"AND node_id IN (SELECT node_id FROM nodes WHERE number = 0) ORDER BY session_id")
	return all, failure("profiles.stranded", err)
}

// document returns a document as it is stored where the column does not allow NULL.
func document(doc json.RawMessage) []byte {
	if len(doc) == 0 {
		return []byte("null")
	}
	return doc
}
