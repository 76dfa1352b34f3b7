package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrInUse says that another Stasis holds the lock of the database.
var ErrInUse = errors.New("another stasis uses the database")

// errUnlocked says that the connection that held the lock was lost, and the lock is not
// taken again yet.
var errUnlocked = fmt.Errorf("%w: its lock is not held", ErrUnavailable)

const (
	lockCheck = 5 * time.Second        // how often the connection of the lock is checked
	lockRetry = 250 * time.Millisecond // the pause between tries to take a lost lock again
	// lockKey is the lock's number, of the schema that the catalogue is in.
	lockKey = "(hashtextextended('stasis ' || coalesce(current_schema(), ''), 0))"
)

// Lock is the lock that a daemon holds on its database: an advisory lock of a separate
// connection. When that connection is lost, Lock takes it again by itself.
type Lock struct {
	config *pgx.ConnConfig
	query  string
	held   atomic.Bool
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// TakeLock takes the lock, or returns [ErrInUse]. A shared lock can be held by several
// daemons, and excludes others. The caller closes it.
func TakeLock(ctx context.Context, c Config, shared bool) (*Lock, error) {
	l := &Lock{config: c.pgx.Copy(), query: "select pg_try_advisory_lock" + lockKey}
	if shared {
		l.query = "select pg_try_advisory_lock_shared" + lockKey
	}
	held, err := l.take(ctx)
	if err != nil {
		return nil, err
	}
	l.held.Store(true)
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	l.done.Go(func() { l.keep(running, held) })
	return l, nil
}

// Check returns an error that matches [ErrUnavailable] while the lock is not held.
func (l *Lock) Check() error {
	if l == nil || l.held.Load() {
		return nil
	}
	return errUnlocked
}

// Close releases the lock. It is idempotent.
func (l *Lock) Close() {
	if l != nil {
		l.stop()
		l.done.Wait()
	}
}

// take connects and takes the lock.
func (l *Lock) take(ctx context.Context) (*pgx.Conn, error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := pgx.ConnectConfig(limited, l.config)
	if err != nil {
		return nil, noConnection(ctx, err)
	}
	var ok bool
	err = conn.QueryRow(limited, l.query).Scan(&ok)
	if err == nil && !ok {
		err = ErrInUse
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close(limited))
	}
	return conn, nil
}

// keep holds the lock until ctx ends, and takes it again after its connection was lost.
func (l *Lock) keep(ctx context.Context, conn *pgx.Conn) {
	for ctx.Err() == nil {
		if conn != nil && alive(ctx, conn) {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		l.held.Store(false)
		if conn != nil {
			closeNow(conn)
		}
		var err error
		if conn, err = l.take(ctx); err == nil {
			l.held.Store(true)
			continue
		}
		conn = nil
		select {
		case <-ctx.Done():
		case <-time.After(lockRetry):
		}
	}
	l.held.Store(false)
	if conn != nil {
		release(conn)
		closeNow(conn)
	}
}

// release gives the lock back. The server would do it too, but only some time after the
// connection is closed, and another Stasis can start at once.
func release(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, _ = conn.Exec(ctx, "select pg_advisory_unlock_all()")
}

// alive waits for lockCheck, or until the connection ends, and reports whether it works.
func alive(ctx context.Context, conn *pgx.Conn) bool {
	wait, cancel := context.WithTimeout(ctx, lockCheck)
	defer cancel()
	// Nobody notifies this connection: it only ends when the server ends it.
	_, _ = conn.WaitForNotification(wait)
	if conn.IsClosed() || ctx.Err() != nil {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return conn.Ping(limited) == nil
}

// closeNow closes a connection whose server may not answer.
func closeNow(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
