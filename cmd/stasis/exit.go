package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/stasisd/stasis/fault"
)

// The exit codes. Scripts depend on them, so a code never changes its meaning.
const (
	exitOK            = 0
	exitFailed        = 1 // any other failure
	exitUsage         = 2 // flags, environment, or a file that they name
	exitChromeMissing = 3 // no Chrome, or its version is too old
	exitSandbox       = 4 // Chrome's sandbox cannot start, or the kernel has no Landlock
	exitInUse         = 5 // another daemon uses the data directory
	exitStore         = 6 // snapshots or the catalogue cannot be read or written
	exitNotReady      = 7 // health: the daemon does not take sessions
	exitDamaged       = 8 // a verification found a damaged snapshot, or a check found any damage

	exitInterrupted = 130 // ended by a signal, as shells report SIGINT
)

var exitCodes = map[fault.Code]int{
	fault.Config:               exitUsage,
	fault.IdentityMissing:      exitUsage,
	fault.ChromeMissing:        exitChromeMissing,
	fault.SandboxFailed:        exitSandbox,
	fault.DataDirInUse:         exitInUse,
	fault.StoreFailed:          exitStore,
	fault.StoreFull:            exitStore,
	fault.CatalogueUnavailable: exitStore,
	fault.NodeLost:             exitStore,
}

// report prints why a verb failed and returns its exit code.
func report(err error) int {
	if err == nil {
		return exitOK
	}
	var known *fault.Error
	if errors.As(err, &known) {
		fmt.Fprintf(os.Stderr, "stasis: %s\n", fault.MessageOf(err))
		if cause := newCause(known); cause != nil {
			fmt.Fprintf(os.Stderr, "  cause: %v\n", cause)
		}
		if code, ok := exitCodes[known.Code]; ok {
			return code
		}
		return exitFailed
	}
	var coded exitError
	if errors.As(err, &coded) {
		fmt.Fprintf(os.Stderr, "stasis: %s\n", coded.message)
		return coded.code
	}
	fmt.Fprintf(os.Stderr, "stasis: %v\n", err)
	return exitFailed
}

// newCause returns the first cause of err whose message does not already end that of err;
// nil if there is none.
func newCause(err *fault.Error) error {
	message, cause := fault.MessageOf(err), errors.Unwrap(err)
	for {
		var known *fault.Error
		if !errors.As(cause, &known) || !strings.HasSuffix(message, fault.MessageOf(known)) {
			return cause
		}
		cause = errors.Unwrap(known)
	}
}

// interrupted returns the exit code of an interruption if a signal ended the verb.
func interrupted(ctx context.Context, err error, message string) error {
	if err != nil && ctx.Err() != nil {
		return exitError{exitInterrupted, message}
	}
	return err
}

// exitError is a failure of a verb without a code of package fault.
type exitError struct {
	code    int
	message string
}

func (e exitError) Error() string { return e.message }
