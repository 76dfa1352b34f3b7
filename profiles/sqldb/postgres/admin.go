package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/stdlib"
)

// ErrUnsuitable matches the errors of a server or database that cannot hold a catalogue.
var ErrUnsuitable = errors.New("the database is not suitable")

// oldest is the oldest version of the server, as server_version_num writes it.
const oldest = 150000

// Admin opens the database for its migration: statements are passed on as they are, without
// a time limit. It checks the version and the encoding. If alone is set, it waits until no
// other process has it open so. done closes it.
func Admin(ctx context.Context, c Config, alone bool) (db *sql.DB, done func() error, err error) {
	db = stdlib.OpenDB(*c.pgx)
	hold, err := db.Conn(ctx)
	if err != nil {
		return nil, nil, errors.Join(noConnection(ctx, err), db.Close())
	}
	done = func() error { return errors.Join(hold.Close(), db.Close()) } // its end frees the lock
	if err = suitable(ctx, hold); err == nil && alone {
		_, err = hold.ExecContext(ctx, "select pg_advisory_lock(hashtextextended('stasis migrations ' || current_schema(), 0))")
	}
	if err != nil {
		return nil, nil, errors.Join(err, done())
	}
	return db, done, nil
}

func suitable(ctx context.Context, c *sql.Conn) error {
	var number, version, encoding string
	var schema sql.NullString
	err := c.QueryRowContext(ctx, "select current_setting('server_version_num'), current_setting('server_version'), current_setting('server_encoding'), current_schema()").
		Scan(&number, &version, &encoding, &schema)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(number)
	switch {
	case err != nil || n < oldest:
		return fmt.Errorf("%w: the server has version %s; use PostgreSQL 15 or later", ErrUnsuitable, version)
	case encoding != "UTF8":
		return fmt.Errorf("%w: its encoding is %s; create it with encoding UTF8", ErrUnsuitable, encoding)
	case !schema.Valid:
		return fmt.Errorf("%w: no schema of its search_path exists; create one", ErrUnsuitable)
	}
	return nil
}
