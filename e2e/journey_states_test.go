package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
	sessionagent "github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
)

// A session goes from ready to running, to paused and back, and to completed. Each
// control call reports the status that it found.
func states(t *testing.T, d *daemon.Daemon) {
	s := create(t, d, body{})
	path := "/v1/sessions/" + s.ID
	is := func(status, execution string) {
		t.Helper()
		var a sessionagent.Status
		d.Must(t, http.StatusOK, http.MethodGet, path+"/status", nil).Into(t, &a)
		if a.SessionStatus != status || a.ExecutionStatus != execution {
			t.Errorf("status: %+v, want %s and %s", a, status, execution)
		}
	}
	does := func(call, status string) {
		t.Helper()
		var a answer.Acknowledgement
		d.Must(t, http.StatusOK, http.MethodPost, path+"/"+call, nil).Into(t, &a)
		if !a.Success || a.Status != status {
			t.Errorf("%s: %+v, want %s", call, a, status)
		}
	}
	is("ready", "ready")
	does("resume", "already_running")
	w := dial(t, s.CDP)
	w.call("", "Browser.getVersion", nil, nil)
	is("running", "ready")
	w.close()
	does("pause", "paused")
	does("pause", "already_paused")
	is("paused", "ready")
	does("resume", "resumed")
	is("running", "ready")
	does("cancel", "cancelled")
	is("running", "ready")
	end(t, d, s.ID, "")
	is("completed", "finished")
	for call, code := range map[string]string{"pause": "session_not_running", "resume": "no_snapshot"} { // the session was never saved
		if a := d.Call(t, http.MethodPost, path+"/"+call, nil); a.Status != http.StatusConflict || a.Code() != code {
			t.Errorf("%s of an ended session: %d %s", call, a.Status, a.Body)
		}
	}
}

// spinning is a page that keeps a core busy.
const spinning = `data:text/html,<script>new Worker(URL.createObjectURL(new Blob(["for(;;);"])))</script>`

// The Chrome of a paused session uses no processor time, whatever its pages do. A client
// that reads from it thaws it while connected. A parked Chrome uses none either.
func TestPauseFreezes(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true}) // a spare is never completely idle
	s := create(t, d, body{"start_url": spinning})
	path := "/v1/sessions/" + s.ID
	runs := func(when string) {
		t.Helper()
		from := ticks(t, d)
		daemon.Eventually(t, stepDeadline, when+", the page uses the processor", func() bool { return ticks(t, d) > from+20 })
	}
	stands := func(when string) {
		t.Helper()
		daemon.Eventually(t, stepDeadline, when+", all processes are stopped", func() bool { return !anyRuns(t, d) })
		from := ticks(t, d)
		<-time.After(300 * time.Millisecond) // no processor time may be used meanwhile; a spinning page uses 30 ticks
		if used := ticks(t, d) - from; used > 0 {
			t.Errorf("%s: %d ticks were used in 300 ms", when, used)
		}
	}
	runs("before")
	d.Must(t, http.StatusOK, http.MethodPost, path+"/pause", nil)
	stands("paused")
	d.Must(t, http.StatusOK, http.MethodGet, path+"/screenshot", nil) // an API call thaws Chrome too
	stands("after a screenshot")
	w := dial(t, s.CDP)
	w.call("", "Browser.getVersion", nil, nil)
	runs("with a client")
	w.close()
	stands("without the client")
	d.Must(t, http.StatusOK, http.MethodPost, path+"/resume", nil)
	runs("resumed")
	d.Must(t, http.StatusOK, http.MethodPost, path+"/pause", nil)
	save(t, d, s.ID, "memory") // while it is paused
	stands("parked")
	r := create(t, d, body{"restore_from_session_id": s.ID})
	if r.Restored.Path != "parked" {
		t.Errorf("restored: %+v", r.Restored)
	}
	runs("restored")
	end(t, d, r.ID, "")
}

// ticks returns the processor time of the daemon's Chromes and their wardens, in clock
// ticks (proc(5), /proc/PID/stat: utime and stime).
func ticks(t testing.TB, d *daemon.Daemon) int {
	t.Helper()
	sum := 0
	for _, p := range d.Processes() {
		fields := procStat(fmt.Sprintf("/proc/%d/stat", p.PID))
		if len(fields) < 13 {
			continue // the process has ended
		}
		for _, f := range fields[11:13] {
			n, err := strconv.Atoi(string(f))
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// anyRuns reports whether a thread of a Chrome is not stopped and has not ended. It ignores
// wardens, which sleep.
func anyRuns(t testing.TB, d *daemon.Daemon) bool {
	t.Helper()
	for _, p := range d.Processes() {
		info, err := os.Stat(fmt.Sprintf("/proc/%d", p.PID))
		if err != nil || statUID(info) == os.Getuid() {
			continue // the process has ended, or is a warden
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID))
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			fields := procStat(thread)
			if len(fields) > 0 && !strings.Contains("TXZ", string(fields[0])) { // stopped, dead or a zombie (proc(5))
				return true
			}
		}
	}
	return false
}

// procStat returns the fields of the stat of a process or thread after its name, starting
// with the state; none if it has ended.
func procStat(path string) [][]byte {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return bytes.Fields(raw[bytes.LastIndexByte(raw, ')')+1:])
}
