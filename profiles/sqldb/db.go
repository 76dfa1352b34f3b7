// Package sqldb is the SQL adapter of the stores of package profiles, on SQLite or
// PostgreSQL. A [DB] has one store per domain; all of them use the same database.
//
// In SQLite, one connection writes and several read, in write-ahead mode with full
// synchronisation: a completed write survives a power loss. In PostgreSQL, transactions are
// SERIALIZABLE and are repeated after a conflict, so the statements may rely on what they
// read on both. The most frequent ones are READ COMMITTED and lock what they rely on. The
// statements are SQL that both databases accept. Everything specific to SQLite is in open.go,
// failure.go and migrations/sqlite; to PostgreSQL in postgres.go, package postgres and
// migrations/postgres.
package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles/sqldb/postgres"
)

// DB is an open catalogue: one store for each domain. It is safe for concurrent use.
type DB struct {
	Keys       *Keys
	Users      *Users
	Sessions   *Sessions
	Snapshots  *Snapshots
	Defaults   *Defaults
	Extensions *Extensions
	Runs       *Runs
	Messages   *Messages
	Notes      *Notes
	Deliveries *Deliveries
	Receivers  *WebhookSecrets
	Answers    *Answers
	Audit      *Audit
	Nodes      *Nodes
	Left       *Left
	Claims     *Claims

	handle *handle
}

// newDB returns the stores of an open database. now is the clock for the time at which a
// commit moves a default.
func newDB(h *handle, now func() time.Time) *DB {
	return &DB{
		Keys: &Keys{h}, Users: &Users{h}, Sessions: &Sessions{h}, Snapshots: &Snapshots{h, now}, Defaults: &Defaults{h},
		Extensions: &Extensions{h}, Runs: &Runs{h}, Messages: &Messages{h}, Notes: &Notes{h}, Deliveries: &Deliveries{h}, Receivers: &WebhookSecrets{h},
		Answers: &Answers{h}, Audit: &Audit{h}, Nodes: &Nodes{h}, Left: &Left{h}, Claims: &Claims{h}, handle: h,
	}
}

// handle owns the connections to the database and runs transactions.
type handle struct {
	writer *sql.DB        // SQLite: one connection, so writers queue in the process, not in SQLite
	reader *sql.DB        // the same pool as writer for a database in memory
	remote bool           // in PostgreSQL
	lock   *postgres.Lock // nil: the database has none
	// leases has the connection that renews the node's lease, so that no transaction delays
	// it. nil: this daemon is not a node.
	leases    *sql.DB
	leaseTime time.Duration
	now       func() time.Time
	lease     atomic.Pointer[lease]          // nil: the daemon is not a node, or has no lease yet
	ended     func(op string, conflicts int) // see [Options.Ended]; may be nil
}

// querier runs statements, inside or outside a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Health reports whether the database can be read. Any failure is store_failed or
// timeout.
func (db *DB) Health(ctx context.Context) error { return db.handle.health(ctx) }

func (h *handle) health(ctx context.Context) error {
	var one int
	err := h.reader.QueryRowContext(ctx, "SELECT COUNT(*) FROM users WHERE user_id = ?", []byte{}).Scan(&one)
	return failure("profiles.health", err)
}

// Close closes the database; later calls do nothing. Afterwards every other method fails
// with store_failed.
func (db *DB) Close() error {
	// Readers first: the last connection to close writes the log into the file.
	db.handle.lock.Close()
	return failure("profiles.close", errors.Join(db.handle.reader.Close(), db.handle.writer.Close(), db.handle.closeLeases()))
}

// callerError carries the error of a caller's callback through a transaction, so that it
// is returned unchanged.
type callerError struct{ error }

const (
	// maxAttempts limits how often a transaction is tried that conflicts with others. At
	// each attempt at least one of them succeeds.
	maxAttempts = 30
	// maxPause limits the pause before the next attempt. It doubles each time, from one
	// millisecond, and its length is random. It is longer than a transaction takes on a busy
	// machine: otherwise all that wait try again while another one runs.
	maxPause = 256 * time.Millisecond
)

// write runs do in one transaction. Any error, and a panic, rolls it back. If PostgreSQL
// undoes the transaction because of a conflict, write runs do again: do must set its results
// anew, and must have no effect outside the transaction. SQLite has one writer, and no
// conflicts. All attempts need the lease that the node has at first: under a later one, what the
// caller has claimed is void. So do reads the lease inside the transaction.
func (h *handle) write(ctx context.Context, op string, do func(tx *sql.Tx) error) error {
	return h.repeat(ctx, op, nil, do)
}

// writeLocked is write for a do that does not need SERIALIZABLE: it depends on nothing that
// another transaction can change before its end. It reads only rows that it has locked (see
// [handle.locking]), or what a unique index protects: then the transaction is tried again. In
// PostgreSQL it is READ COMMITTED, so transactions with other rows never make it conflict.
func (h *handle) writeLocked(ctx context.Context, op string, do func(tx *sql.Tx) error) error {
	if !h.remote {
		return h.repeat(ctx, op, nil, do)
	}
	return h.repeat(ctx, op, &sql.TxOptions{Isolation: sql.LevelReadCommitted}, do)
}

// locking returns the end of a query that locks the rows that it returns until the transaction
// ends. The query returns them as the last transaction has left them. SQLite has one writer.
func (h *handle) locking() string {
	if h.remote {
		return " FOR NO KEY UPDATE"
	}
	return ""
}

// repeat runs attempts until one does not conflict.
func (h *handle) repeat(ctx context.Context, op string, o *sql.TxOptions, do func(tx *sql.Tx) error) error {
	held := h.lease.Load()
	attempt := 1
	if h.ended != nil {
		defer func() { h.ended(op, attempt-1) }()
	}
	for ; ; attempt++ {
		err := h.attempt(ctx, op, held, o, do)
		switch {
		case err == nil, fault.CodeOf(err) != fault.StoreFailed && fault.CodeOf(err) != fault.CatalogueUnavailable:
			return err
		case postgres.Lost(err) && attempt == 1: // another connection may work
		case !postgres.Conflict(err):
			return err
		case attempt == maxAttempts:
			return contended(op, err)
		}
		limit := min(time.Millisecond<<min(attempt, 10), maxPause)
		select {
		case <-ctx.Done():
			return failure(op, errors.Join(err, ctx.Err()))
		case <-time.After(rand.N(limit)):
		}
	}
}

// attempt runs do in one transaction, once, if the node has the lease held.
func (h *handle) attempt(ctx context.Context, op string, held *lease, o *sql.TxOptions, do func(tx *sql.Tx) error) error {
	if err := h.lock.Check(); err != nil {
		return failure(op, err)
	}
	tx, err := h.writer.BeginTx(ctx, o)
	if err != nil {
		return failure(op, err)
	}
	// After a commit this does nothing. If do panics, it frees the only connection. Its
	// error would add nothing to the one that caused the rollback.
	defer func() { _ = tx.Rollback() }()
	if err := held.check(ctx, tx, op); err != nil {
		return failure(op, err)
	}
	if err := do(tx); err != nil {
		var c callerError
		if errors.As(err, &c) {
			return c.error
		}
		return failure(op, err)
	}
	err = tx.Commit()
	if errors.Is(err, sql.ErrTxDone) {
		err = errors.Join(err, ctx.Err()) // the context rolled it back, which database/sql does not report
	}
	return failure(op, err)
}

// collect reads every row of a query with scan.
func collect[T any](ctx context.Context, q querier, scan func(row) (T, error), query string, args ...any) (all []T, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, rows.Err()
}
