package daemon

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Spares returns how many Chromes the daemon keeps ready while it is idle; 0 if it does
// not run.
func (d *Daemon) Spares() int {
	if !d.running() {
		return 0
	}
	return d.spares
}

// Goroutines ends the daemon with SIGQUIT and counts its goroutines. Go's runtime writes
// their stacks to the log.
func (d *Daemon) Goroutines(t testing.TB) int {
	t.Helper()
	before := strings.Count(d.Log(), "\ngoroutine ")
	if err := d.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	<-d.done
	return strings.Count(d.Log(), "\ngoroutine ") - before
}

// Wait waits until the process has ended without a signal from the test, and returns its
// error.
func (d *Daemon) Wait(ctx context.Context) error {
	select {
	case <-d.done:
		return d.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Rescued waits until the daemon has rescued the sessions of the last daemon.
func (d *Daemon) Rescued(t testing.TB) {
	t.Helper()
	Eventually(t, 5*time.Minute, "the sessions of the last daemon are rescued", func() bool { return d.Rescuing(t) == 0 })
}

// Rescuing returns how many sessions the daemon still has to rescue.
func (d *Daemon) Rescuing(t testing.TB) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // only reads the metrics
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		var n int
		if _, err := fmt.Sscanf(lines.Text(), "stasis_sessions_rescuing %d", &n); err == nil {
			return n
		}
	}
	t.Fatal("/metrics has no count of the sessions to rescue")
	return 0
}

// PID returns the daemon's process ID.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Log returns the daemon's standard error, over all its starts.
func (d *Daemon) Log() string { return d.log.String() }

func (d *Daemon) running() bool {
	select {
	case <-d.done:
		return false
	default:
		return d.cmd != nil && d.cmd.Process != nil
	}
}
