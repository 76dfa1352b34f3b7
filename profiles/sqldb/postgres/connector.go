// Package postgres is a driver for database/sql that lets the statements of package sqldb
// run on PostgreSQL 15 or later, by pgx. It takes "?" for parameters, stores every string of
// Go, limits how long a statement waits for the server, runs each transaction as
// SERIALIZABLE, and finds out what became of a commit whose answer was lost.
//
// Errors of a server that cannot be reached, or does not answer, match [ErrUnavailable].
// Other errors of the server are of pgconn.
package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// connectTimeout limits a new connection, if the URL has no connect_timeout.
	connectTimeout = 5 * time.Second
	// patience is how long a statement waits for the server.
	patience = 10 * time.Second
	// reconnectPause is how long no new connection is tried after one failed. Calls that
	// wait for a connection fail meanwhile, rather than one after the other.
	reconnectPause = time.Second
)

// Address says whether a setting is the URL of a PostgreSQL database.
func Address(s string) bool {
	return strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://")
}

// Config is a parsed URL.
type Config struct {
	pgx *pgx.ConnConfig
	// Pool is how many connections transactions and reads have together; 0 if the URL does not
	// say.
	Pool int
}

// poolSize is the parameter of a URL with its [Config.Pool], which the server does not know. pgx's
// own pool has the same name for it. leastPool is its smallest value.
const (
	poolSize  = "pool_max_conns"
	leastPool = 3
)

// Parse parses the URL of a database, as libpq does
// (https://www.postgresql.org/docs/current/libpq-connect.html#LIBPQ-CONNSTRING), with the
// environment's PG… variables and the password file. Its error never contains the URL.
func Parse(address string) (Config, error) {
	c, err := pgx.ParseConfig(address)
	if err != nil {
		var parsed *pgconn.ParseConfigError
		var inURL *url.Error
		if reason := errors.Unwrap(err); errors.As(err, &parsed) && reason != nil && !errors.As(err, &inURL) {
			return Config{}, reason // such as an unreadable certificate
		}
		return Config{}, errors.New("it is not a valid URL")
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectTimeout
	}
	if c.ValidateConnect == nil {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary // a standby cannot be written
	}
	own := Config{pgx: c}
	if size := c.RuntimeParams[poolSize]; size != "" {
		if own.Pool, err = strconv.Atoi(size); err != nil || own.Pool < leastPool {
			return Config{}, fmt.Errorf("%s: must be a number of connections, at least %d", poolSize, leastPool)
		}
		delete(c.RuntimeParams, poolSize)
	}
	setDefault(c, "application_name", "stasis")
	for name, value := range vanished {
		setDefault(c, name, value)
	}
	return own, nil
}

// vanished has the server close connections of a machine that is gone after half a minute, rather
// than after hours. Until then they would count for max_connections.
var vanished = map[string]string{"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3"}

// setDefault sets a setting of the server that the URL does not set.
func setDefault(c *pgx.ConnConfig, name, value string) {
	if c.RuntimeParams[name] == "" {
		c.RuntimeParams[name] = value
	}
}

// Connector makes the connections of a pool.
type Connector struct {
	driver.Connector
	plain *pgx.ConnConfig

	mu   sync.Mutex
	down error // why the last connection failed; nil after reconnectPause
}

// NewConnector makes a Connector. With readOnly, the server refuses writes. The server ends a
// transaction that waits for its client for longer than idle. Otherwise a process that is stopped,
// or cut off, in a transaction would hold its locks, and all others would wait for them.
func NewConnector(c Config, readOnly bool, idle time.Duration) *Connector {
	own := c.pgx.Copy()
	setDefault(own, "idle_in_transaction_session_timeout", strconv.FormatInt(idle.Milliseconds(), 10))
	if readOnly {
		own.RuntimeParams["default_transaction_read_only"] = "on"
	}
	never := stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })
	return &Connector{Connector: stdlib.GetConnector(*own, never), plain: c.pgx}
}

// Connect implements [driver.Connector].
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	c.mu.Lock()
	down := c.down
	c.mu.Unlock()
	if down != nil {
		return nil, down
	}
	made, err := c.Connector.Connect(ctx)
	if err != nil {
		err = noConnection(ctx, err)
		if errors.Is(err, ErrUnavailable) {
			c.pause(err)
		}
		return nil, err
	}
	is, ok := made.(*stdlib.Conn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("unexpected connection %T", made), made.Close())
	}
	return &conn{Conn: is, connector: c}, nil
}

// pause lets connections fail with err for reconnectPause.
func (c *Connector) pause(err error) {
	c.mu.Lock()
	c.down = err
	c.mu.Unlock()
	time.AfterFunc(reconnectPause, func() {
		c.mu.Lock()
		c.down = nil
		c.mu.Unlock()
	})
}

// conn is a connection.
type conn struct {
	*stdlib.Conn
	connector *Connector
	inTx      bool
}

var (
	_ driver.QueryerContext    = (*conn)(nil)
	_ driver.ExecerContext     = (*conn)(nil)
	_ driver.ConnBeginTx       = (*conn)(nil)
	_ driver.NamedValueChecker = (*conn)(nil)
)

// CheckNamedValue converts an argument to a basic type.
func (c *conn) CheckNamedValue(v *driver.NamedValue) (err error) {
	if v.Value, err = driver.DefaultParameterConverter.ConvertValue(v.Value); err != nil {
		return err
	}
	if s, ok := v.Value.(string); ok {
		v.Value = escape(s)
	}
	return nil
}

// QueryContext implements [driver.QueryerContext]. A read that loses its connection outside
// a transaction is repeated on another one.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	limited, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(patience, cancel)
	found, err := c.Conn.QueryContext(limited, numbered(query), args)
	timer.Stop()
	if err != nil {
		err = c.explain(ctx, limited, err)
		cancel()
		if !c.inTx && errors.Is(err, errLost) {
			return nil, driver.ErrBadConn
		}
		return nil, err
	}
	is, ok := found.(*stdlib.Rows)
	if !ok {
		cancel()
		return nil, errors.Join(fmt.Errorf("unexpected rows %T", found), found.Close())
	}
	return &rows{Rows: is, conn: c, ctx: ctx, limited: limited, cancel: cancel, timer: timer}, nil
}

// ExecContext implements [driver.ExecerContext].
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := c.Conn.ExecContext(limited, numbered(query), args)
	if err != nil {
		return nil, c.explain(ctx, limited, err)
	}
	return r, nil
}

// rows are the rows of a query.
type rows struct {
	*stdlib.Rows
	conn         *conn
	ctx, limited context.Context
	cancel       context.CancelFunc
	timer        *time.Timer // cancels limited; it runs while Next waits
}

// Next implements [driver.Rows].
func (r *rows) Next(dest []driver.Value) error {
	r.timer.Reset(patience)
	err := r.Rows.Next(dest)
	r.timer.Stop()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		return r.conn.explain(r.ctx, r.limited, err)
	}
	for i, v := range dest {
		if s, ok := v.(string); ok {
			dest[i] = unescape(s)
		}
	}
	return nil
}

// Close implements [driver.Rows].
func (r *rows) Close() error {
	defer r.cancel()
	return r.Rows.Close()
}
