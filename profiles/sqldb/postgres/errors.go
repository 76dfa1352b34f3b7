package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrUnavailable matches every error that says that the server cannot be reached, does not
// answer, or refuses work for now.
var ErrUnavailable = errors.New("the database cannot be reached")

var (
	// errLost: the connection was lost. What its transaction did is undone.
	errLost = fmt.Errorf("%w: the connection was lost", ErrUnavailable)
	// errUnanswered: the server did not answer in time.
	errUnanswered = fmt.Errorf("%w: it did not answer in time", ErrUnavailable)
)

// ErrOutcomeUnknown says that the connection was lost during a commit, and that the server
// did not return in time to say what became of it. It matches [ErrUnavailable].
var ErrOutcomeUnknown = fmt.Errorf("%w: whether the transaction was committed is unknown", ErrUnavailable)

// Codes of the server (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	uniqueViolation      = "23505"
	diskFull             = "53100"
)

// unavailable lists the codes, or their first letters, of a server that starts, stops or
// has no room for a connection.
var unavailable = []string{"08", "57P", "53300", "25P03"}

// codeOf returns the server's code of an error; "" if the server did not send it.
func codeOf(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Unavailable reports whether the server could not be reached or refuses work for now.
func Unavailable(err error) bool {
	if errors.Is(err, ErrUnavailable) || errors.Is(err, driver.ErrBadConn) {
		return true
	}
	code := codeOf(err)
	for _, prefix := range unavailable {
		if code != "" && strings.HasPrefix(code, prefix) {
			return true
		}
	}
	return false
}

// Full reports whether the server has no space left.
func Full(err error) bool { return codeOf(err) == diskFull }

// Lost reports whether a transaction lost its connection and is undone. It can be repeated
// on another connection.
func Lost(err error) bool { return errors.Is(err, errLost) || errors.Is(err, driver.ErrBadConn) }

// Conflict reports whether a transaction was undone because of another one at the same
// time, so that it can be repeated. Two transactions that both read a highest number and
// write the next one may also violate a unique index
// (https://www.postgresql.org/docs/current/transaction-iso.html#XACT-SERIALIZABLE).
func Conflict(err error) bool {
	switch codeOf(err) {
	case serializationFailure, deadlockDetected, uniqueViolation:
		return true
	}
	return false
}

// Violation reports whether a unique index refused a row.
func Violation(err error) bool { return codeOf(err) == uniqueViolation }

// Denied reports whether the server refuses the role, its password or the database, or the
// role may not do what the statement does.
func Denied(err error) bool {
	code := codeOf(err)
	return strings.HasPrefix(code, "28") || strings.HasPrefix(code, "3D") || strings.HasPrefix(code, "3F") || code == "42501"
}

// noConnection describes why a connection failed. ctx is the caller's.
func noConnection(ctx context.Context, err error) error {
	if caller := ctx.Err(); caller != nil {
		return errors.Join(err, caller)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// explain describes the error of a statement. ctx is the caller's, limited the one that
// ends when the server took too long.
func (c *conn) explain(ctx, limited context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return errors.Join(err, ctx.Err())
	case limited.Err() != nil:
		return fmt.Errorf("%w: %w", errUnanswered, err)
	case c.Conn.Conn().IsClosed():
		return fmt.Errorf("%w: %w", errLost, err)
	}
	return err
}
