package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb/postgres"
)

const (
	// postgresPool is how many connections to PostgreSQL a daemon has for transactions and reads
	// together, if the URL does not say. The lock has another one, and the lease of a node.
	postgresPool = 16
	// leastIdle is the least time for which a transaction may wait for its daemon. It is usually
	// two thirds of a lease, so that the locks of a node are free when it is taken over.
	leastIdle = 2 * time.Second
)

// Remote reports whether a path is the URL of a PostgreSQL database.
func Remote(path string) bool { return postgres.Address(path) }

// CheckURL checks the URL of a PostgreSQL database without a connection. Its error never
// contains the URL.
func CheckURL(address string) error {
	_, err := postgres.Parse(address)
	return err
}

// openPostgres opens the pools, and migrates the tables. Two processes that start at once
// migrate one after the other.
func (h *handle) openPostgres(ctx context.Context, o Options) error {
	config, err := postgres.Parse(o.Path)
	if err != nil {
		return fault.New(fault.Config, "profiles.open", "--database: %v", err)
	}
	if o.Exclusive || o.Node {
		if h.lock, err = postgres.TakeLock(ctx, config, o.Node); err != nil {
			return openFailure(ctx, err)
		}
	}
	lease := cmp.Or(o.LeaseTime, profiles.LeaseTime)
	idle := max(lease*2/3, leastIdle)
	if o.Node {
		h.leases = remotePool(config, false, 1, idle)
		h.leaseTime = lease
	}
	h.remote = true
	writers, readers := split(cmp.Or(config.Pool, postgresPool))
	h.writer = remotePool(config, o.ReadOnly, writers, idle)
	h.reader = h.writer
	if !o.ReadOnly {
		h.reader = remotePool(config, true, readers, idle)
	}
	migrating, done, err := postgres.Admin(ctx, config, !o.ReadOnly)
	if err != nil {
		return openFailure(ctx, err)
	}
	return openFailure(ctx, errors.Join(migrate(ctx, goose.DialectPostgres, "migrations/postgres", migrating, o.ReadOnly), done()))
}

// split divides connections between transactions and reads. There are two for transactions at
// least: one may wait for other nodes that write the audit log.
func split(n int) (writers, readers int) {
	writers = max(2, n*3/8)
	return writers, n - writers
}

func remotePool(c postgres.Config, readOnly bool, n int, idle time.Duration) *sql.DB {
	return keeping(sql.OpenDB(postgres.NewConnector(c, readOnly, idle)), n)
}

// keeping has a pool make at most n connections, and close none of them between uses.
func keeping(p *sql.DB, n int) *sql.DB {
	p.SetMaxOpenConns(n)
	p.SetMaxIdleConns(n)
	return p
}

// openFailure explains to an operator why a database cannot be opened. ctx is the caller's: if it has
// not ended, a connection that took too long did so because of the server.
func openFailure(ctx context.Context, err error) error {
	const op = "profiles.open"
	switch {
	case err == nil:
		return nil
	case errors.Is(err, postgres.ErrInUse):
		return fault.New(fault.DataDirInUse, op, "--database: another stasis uses this database; stop that process, give another database, or make both nodes with --node-url")
	case errors.Is(err, postgres.ErrUnsuitable):
		return fault.New(fault.Config, op, "--database: %v", err)
	case postgres.Denied(err):
		return fault.Wrap(err, fault.Config, op, "--database: the server refuses the role, its password, the database, or the right to create tables in its schema")
	case postgres.Unavailable(err) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return fault.Wrap(err, fault.CatalogueUnavailable, op, "--database: the server cannot be reached; start it, or correct the URL")
	}
	return err
}
