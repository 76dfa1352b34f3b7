package daemon

import (
	"context"
	"strings"
	"syscall"
	"testing"
)

// Spares is how many Chromes it keeps ahead of need, once it has come to rest:
// none when it does not run.
func (d *Daemon) Spares() int {
	if !d.running() {
		return 0
	}
	return d.kept
}

// Goroutines ends the daemon with SIGQUIT, upon which Go's runtime writes every
// goroutine's stack, and counts them.
func (d *Daemon) Goroutines(t testing.TB) int {
	t.Helper()
	before := strings.Count(d.Log(), "\ngoroutine ")
	if err := d.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	<-d.done
	return strings.Count(d.Log(), "\ngoroutine ") - before
}

// Wait waits until the process has ended by itself and returns its error.
func (d *Daemon) Wait(ctx context.Context) error {
	select {
	case <-d.done:
		return d.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// PID is the daemon's process ID.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Log is what the daemon wrote to standard error, over all its lives.
func (d *Daemon) Log() string { return d.log.String() }

func (d *Daemon) running() bool {
	select {
	case <-d.done:
		return false
	default:
		return d.cmd != nil && d.cmd.Process != nil
	}
}
