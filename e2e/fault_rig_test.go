package e2e

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/profiles"
)

// grace is how long tests wait for an expected event. It is long because the machine may
// be busy.
const grace = 2 * time.Minute

// obj is the body of a request.
type obj = map[string]any

// liveSession is the part of a session's answer that the tests check.
type liveSession struct {
	ID        string `json:"session_id"`
	UserID    string `json:"user_id"`
	Status    string
	Reason    string
	Why       profiles.ReasonCode `json:"reason_code"`
	CDP       string              `json:"cdp_url"`
	Restarted bool                `json:"browser_restarted"`
	Rescuing  bool
	Restored  *struct {
		SnapshotID     string `json:"snapshot_id"`
		Path           string
		Datadir        string
		Warnings       []string
		FallbackReason string `json:"fallback_reason"`
	}
	Outcome *ending
}

// ending is the part of a delete's answer that the tests check.
type ending struct {
	Deleted  bool
	Message  string
	Snapshot *struct {
		ID     string
		Mode   string
		Rescue bool
	}
	Default *struct {
		Moved   bool
		Version int64
	}
}

// begin creates a session. The test fails if that fails.
func begin(t testing.TB, d *daemon.Daemon, body obj) liveSession {
	t.Helper()
	return beginAs(t, d, daemon.Key, body)
}

func beginAs(t testing.TB, d *daemon.Daemon, key string, body obj) (s liveSession) {
	t.Helper()
	a := d.CallAs(t, key, http.MethodPost, "/v1/sessions", body)
	if a.Status != http.StatusCreated {
		t.Fatalf("create = %d\n%s", a.Status, a.Body)
	}
	a.Into(t, &s)
	return s
}

// finish ends a session with a query. The test fails if that fails.
func finish(t testing.TB, d *daemon.Daemon, id, query string) (e ending) {
	t.Helper()
	d.Must(t, http.StatusOK, http.MethodDelete, "/v1/sessions/"+id+"?"+query, nil).Into(t, &e)
	if !e.Deleted {
		t.Fatalf("session %s was not ended: %s", id, e.Message)
	}
	return e
}

const (
	throwAway  = "save_snapshot_mode=none"
	toFiles    = "save_snapshot_mode=filesystem"
	toMemory   = "save_snapshot_mode=memory"
	andDefault = "&save_as_default=true"
)

// look reads a session's record.
func look(t testing.TB, d *daemon.Daemon, id string) (s liveSession) {
	t.Helper()
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions/"+id, nil).Into(t, &s)
	return s
}

// wants fails the test unless an answer has the status and the error code.
func wants(t testing.TB, a daemon.Answer, status int, code string) {
	t.Helper()
	if a.Status != status || a.Code() != code {
		t.Errorf("answer = %d %s, want %d %s\n%s", a.Status, a.Code(), status, code, a.Body)
	}
}

// newKey makes a key for one user.
func newKey(t testing.TB, d *daemon.Daemon, user string) string {
	t.Helper()
	var k struct{ Secret string }
	d.Must(t, http.StatusCreated, http.MethodPost, "/v1/keys",
		obj{"name": user, "user_id": user, "rights": []string{"use"}}).Into(t, &k)
	return k.Secret
}

// plain makes a request that openapi.yaml does not describe, with more headers.
func plain(t testing.TB, d *daemon.Daemon, method, path string, header http.Header) (status int, body string) {
	t.Helper()
	return send(t, d, method, path, header, nil)
}

// upload gives a session a file.
func upload(t testing.TB, d *daemon.Daemon, id, name, content string) {
	t.Helper()
	status, body := send(t, d, http.MethodPost, at(id, "/files?name="+url.QueryEscape(name)),
		http.Header{"Content-Type": {"application/octet-stream"}}, strings.NewReader(content))
	if status != http.StatusCreated {
		t.Fatalf("upload of %s = %d %s", name, status, body)
	}
}

// send makes a request with the test key and an unchanged body.
func send(t testing.TB, d *daemon.Daemon, method, path string, header http.Header, in io.Reader) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, d.URL+path, in)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+daemon.Key)
	for name := range header {
		req.Header.Set(name, header.Get(name))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// runDirs returns the names of the folders in the daemon's run folder.
func runDirs(t testing.TB, d *daemon.Daemon) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(d.Dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// onlyRunDir returns the run directory of the only live session.
func onlyRunDir(t testing.TB, d *daemon.Daemon) string {
	t.Helper()
	dirs := runDirs(t, d)
	if len(dirs) != 1 {
		t.Fatalf("run directories: %q, want one", dirs)
	}
	return filepath.Join(d.Dir, "run", dirs[0])
}

// mains returns the main processes of the daemon's Chromes: those with a profile folder
// that are not another process's helper.
func mains(d *daemon.Daemon) []int {
	var pids []int
	for _, p := range d.Processes() {
		if strings.Contains(p.Command, "--user-data-dir=") && strings.Contains(p.Command, "--remote-debugging-pipe") &&
			!strings.Contains(p.Command, "--type=") {
			pids = append(pids, p.PID)
		}
	}
	sort.Ints(pids)
	return pids
}

// kill9 sends SIGKILL to one process.
func kill9(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}

// nothingRuns waits until no process of the daemon's Chromes runs.
func nothingRuns(t testing.TB, d *daemon.Daemon, within time.Duration) {
	t.Helper()
	daemon.Eventually(t, within, "no process of a Chrome runs", func() bool { return len(d.Processes()) == 0 })
}

// nothingLeft waits until there are no processes and no run directories, except those of
// spares.
func nothingLeft(t testing.TB, d *daemon.Daemon) {
	t.Helper()
	daemon.Eventually(t, grace, "only spares run", func() bool { return len(mains(d)) == d.Spares() })
	if d.Spares() == 0 {
		nothingRuns(t, d, grace)
	}
	daemon.Eventually(t, grace, "only spares have run directories", func() bool { return len(runDirs(t, d)) == d.Spares() })
}

// files lists the regular files below a folder, relative to it, sorted.
func files(t testing.TB, dir string) []string {
	t.Helper()
	found := []string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			rel, err := filepath.Rel(dir, path)
			found = append(found, rel)
			return err
		}
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil // a Chrome that runs has removed it
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	sort.Strings(found)
	return found
}

// uidOf returns the user ID of a process.
func uidOf(t testing.TB, pid int) int {
	t.Helper()
	info, err := os.Stat("/proc/" + strconv.Itoa(pid))
	if err != nil {
		t.Fatal(err)
	}
	return statUID(info)
}

// statUID returns the user ID of a file's owner; -1 if it is not known.
func statUID(info os.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

// asUser runs a command as another user.
func asUser(uid int, command ...string) (string, error) {
	command = append(setpriv(uid), command...)
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	return string(out), err
}

// at returns the path of a session's route.
func at(id string, more ...string) string {
	return "/v1/sessions/" + url.PathEscape(id) + strings.Join(more, "")
}
