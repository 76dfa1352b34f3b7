package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// settling is how long a commit without an answer waits for the server's return.
	settling      = 30 * time.Second
	settlingPause = 200 * time.Millisecond
)

// These begin a transaction and get its ID, in one round trip. The ID tells later what became
// of the transaction.
const (
	begin          = "begin isolation level serializable; select pg_current_xact_id()::text"
	beginCommitted = "begin isolation level read committed; select pg_current_xact_id()::text"
)

// tx is a transaction.
type tx struct {
	conn *conn
	id   string
}

// BeginTx implements [driver.ConnBeginTx]. A transaction is SERIALIZABLE, unless READ COMMITTED
// is asked for. One that only reads sees the database as it was at its first statement.
func (c *conn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	query := begin
	switch {
	case o.ReadOnly:
		query = "begin isolation level repeatable read read only"
	case sql.IsolationLevel(o.Isolation) == sql.LevelReadCommitted:
		query = beginCommitted
	}
	results, err := c.Conn.Conn().PgConn().Exec(limited, query).ReadAll()
	if err != nil {
		err = c.explain(ctx, limited, err)
		if errors.Is(err, errLost) {
			return nil, driver.ErrBadConn // nothing has happened: database/sql tries another one
		}
		return nil, err
	}
	t := &tx{conn: c}
	if len(results) == 2 && len(results[1].Rows) == 1 {
		t.id = string(results[1].Rows[0][0])
	}
	c.inTx = true
	return t, nil
}

// Commit implements [driver.Tx]. If the connection is lost meanwhile, Commit waits for the
// server and asks it what became of the transaction: nil if it was committed. Otherwise
// nothing of it is left, unless the error is [ErrOutcomeUnknown].
func (t *tx) Commit() error {
	tags, err := t.end("commit")
	switch {
	case err == nil && len(tags) == 1 && tags[0].CommandTag.String() == "COMMIT":
		return nil
	case err == nil:
		return errors.New("the transaction had failed and was rolled back")
	case !t.conn.Conn.Conn().IsClosed() || t.id == "":
		return err // the server answered that it did not commit
	}
	return t.settle(err)
}

// Rollback implements [driver.Tx].
func (t *tx) Rollback() error {
	if t.conn.Conn.Conn().IsClosed() {
		t.conn.inTx = false
		return driver.ErrBadConn
	}
	_, err := t.end("rollback")
	return err
}

// end runs the last statement of the transaction. The caller's context does not interrupt
// it.
func (t *tx) end(statement string) ([]*pgconn.Result, error) {
	t.conn.inTx = false
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return t.conn.Conn.Conn().PgConn().Exec(ctx, statement).ReadAll()
}

// settle asks the server for the outcome, until it is known. cause is the error of the
// commit.
func (t *tx) settle(cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), settling)
	defer cancel()
	for {
		switch status, err := t.conn.connector.outcome(ctx, t.id); {
		case err == nil && status == "committed":
			return nil
		case err == nil && status == "aborted":
			return fmt.Errorf("%w: %w", errLost, cause)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrOutcomeUnknown, cause)
		case <-time.After(settlingPause):
		}
	}
}

// outcome returns "committed", "aborted" or "in progress" for a transaction; "" if the
// server no longer knows.
func (c *Connector) outcome(ctx context.Context, id string) (string, error) {
	conn, err := pgx.ConnectConfig(ctx, c.plain)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	var status *string
	err = conn.QueryRow(ctx, "select pg_xact_status($1::text::xid8)", id).Scan(&status)
	if codeOf(err) == "22023" { // an ID of the future: the server lost it in a crash or a failover
		return "aborted", nil
	}
	if err != nil || status == nil {
		return "", err
	}
	return *status, nil
}
