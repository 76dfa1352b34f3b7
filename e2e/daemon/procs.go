package daemon

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Process is a process of this machine.
type Process struct {
	PID     int
	Command string
}

// Processes returns the living processes whose command line names the data directory:
// all processes of its Chromes and their wardens, without the daemon itself.
func (d *Daemon) Processes() []Process {
	var found []Process
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range entries {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if d.cmd.Process != nil && pid == d.cmd.Process.Pid {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !strings.Contains(string(raw), d.Dir) && !d.inDir(dir) {
			continue
		}
		if stat, err := os.ReadFile(filepath.Join(dir, "stat")); err != nil || strings.Contains(string(stat), ") Z ") {
			continue
		}
		found = append(found, Process{PID: pid, Command: strings.ReplaceAll(string(raw), "\x00", " ")})
	}
	return found
}

// inDir reports whether a process works in the data directory.
func (d *Daemon) inDir(proc string) bool {
	cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
	return err == nil && strings.HasPrefix(cwd, d.Dir+"/")
}

// Eventually polls a condition. Most ask the daemon, whose answers and their checks take
// processor time from what the test waits for, so the pauses grow.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// Eventually waits for a condition, and fails the test if it is not true in time.
func Eventually(t testing.TB, within time.Duration, what string, is func() bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for pause := firstPause; !is(); pause = min(pause*5/4, lastPause) {
		select {
		case <-deadline.C:
			t.Fatalf("waited for: %s; it did not happen within %s", what, within)
		case <-time.After(pause):
		}
	}
}
