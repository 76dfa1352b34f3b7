// Package fault holds the one error type of Stasis.
//
// Every package reports failures as an [Error]: a code from the closed list in this
// package, the operation that failed, and its cause. Package api maps codes to HTTP
// statuses, and cmd/stasis maps them to exit codes. This package does no I/O and imports
// nothing of Stasis.
package fault

import (
	"errors"
	"fmt"
)

// Error is a failure with a code that callers can act on.
//
// Message is safe to show to an API client. It names the field or object and what is
// allowed. It never contains a cookie, key, ticket, archive byte or a path of the
// machine. Err is the cause, for logs and errors.Is; clients do not see it.
type Error struct {
	Code    Code
	Op      string // the operation, such as "snapshot.open"
	Message string // for the client; empty means the code's generic text
	Err     error
}

// New returns an Error with a message for the client and no cause.
func New(code Code, op, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an Error around a cause. The message is for the client and may be empty.
// If err is nil, Wrap returns nil.
func Wrap(err error, code Code, op, message string) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Op: op, Message: message, Err: err}
}

// Error returns operation, code, message and cause on one line, for logs.
func (e *Error) Error() string {
	s := e.Op + ": " + string(e.Code)
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// CodeOf returns the code of the outermost Error in err's chain, [Internal]
// for any other error and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}

// MessageOf returns what a client may see of err: the outermost Error's message, or the
// generic text of its code.
func MessageOf(err error) string {
	var e *Error
	if errors.As(err, &e) && e.Message != "" {
		return e.Message
	}
	return CodeOf(err).Text()
}

// Is reports whether err has the code.
func Is(err error, code Code) bool { return err != nil && CodeOf(err) == code }
