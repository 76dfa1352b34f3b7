package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stasisd/stasis/profiles/sqldb/postgres"
)

// Tables returns the names of all tables, each after those that it refers to.
func Tables() []string { return tables }

// Clear deletes all rows of a catalogue.
func Clear(ctx context.Context, db *DB) error {
	all := slices.Clone(tables)
	slices.Reverse(all)
	for _, table := range append(all, kept...) { // triggers write into those of kept once more
		if _, err := db.handle.writer.ExecContext(ctx, "DELETE FROM "+table); err != nil {
			return err
		}
	}
	return nil
}

// FailFirstCommits lets every other commit of a PostgreSQL catalogue fail with a conflict, so
// that transactions run twice.
func FailFirstCommits(db *DB, address string) error {
	config, err := postgres.Parse(address)
	if err != nil {
		return err
	}
	old := db.handle.writer
	writers, _ := split(postgresPool)
	db.handle.writer = keeping(sql.OpenDB(&conflicting{Connector: postgres.NewConnector(config, false, leastIdle)}), writers)
	return old.Close()
}

type conflicting struct {
	driver.Connector
	commits atomic.Int64
}

func (c *conflicting) Connect(ctx context.Context) (driver.Conn, error) {
	made, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return conflictingConn{made.(fullConn), c}, nil
}

// fullConn is what database/sql uses of a connection.
type fullConn interface {
	driver.Conn
	driver.QueryerContext
	driver.ExecerContext
	driver.ConnBeginTx
	driver.NamedValueChecker
	driver.SessionResetter
}

type conflictingConn struct {
	fullConn
	all *conflicting
}

func (c conflictingConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.fullConn.BeginTx(ctx, o)
	return conflictingTx{tx, c.all}, err
}

type conflictingTx struct {
	driver.Tx
	all *conflicting
}

func (t conflictingTx) Commit() error {
	if t.all.commits.Add(1)%2 == 1 {
		return errors.Join(&pgconn.PgError{Code: "40001"}, t.Rollback())
	}
	return t.Tx.Commit()
}

// Exec executes a statement outside the stores.
func Exec(ctx context.Context, db *DB, query string, args ...any) error {
	_, err := db.handle.writer.ExecContext(ctx, query, args...)
	return err
}
