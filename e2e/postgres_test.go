package e2e

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/profiles/postgrestest"
)

// startPostgres starts a server with an empty database "stasis", until the test ends.
func startPostgres(t *testing.T) *postgrestest.Server {
	t.Helper()
	server, err := postgrestest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := server.Exec(t.Context(), "postgres", "CREATE DATABASE stasis"); err != nil {
		t.Fatal(err)
	}
	return server
}

// unavailable checks the answer of a daemon whose database is away.
func unavailable(t *testing.T, a daemon.Answer) {
	t.Helper()
	wants(t, a, http.StatusServiceUnavailable, "catalogue_unavailable")
	if a.Header.Get("Retry-After") == "" {
		t.Error("the answer has no Retry-After")
	}
}

// A daemon with its catalogue in PostgreSQL saves and restores, over restarts of itself and
// of the server. While the server is away its calls answer 503, and live sessions continue.
func TestPostgres(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	url := server.URL("stasis")
	d := daemon.Start(t, daemon.Options{NoSpares: true, Env: []string{"STASIS_DATABASE=" + url}, Args: shellUnlessLong()})
	site := apps.StartProbe(t)
	key := newKey(t, d, "ada")
	s := beginAs(t, d, key, obj{"persist": true})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	w.eval(page, `document.cookie = "login=yes; max-age=100000"; localStorage.setItem("kept", "yes"); 1`)
	if e := finish(t, d, s.ID, toFiles+andDefault); e.Default == nil || e.Default.Version != 1 {
		t.Fatalf("the end: %+v", e)
	}
	if _, err := os.Stat(d.Dir + "/stasis.db"); !os.IsNotExist(err) {
		t.Errorf("the data directory has a catalogue too: %v", err)
	}

	// A second daemon on the same database is refused.
	code, out := stasis(t, nil, "serve", "--data-dir", daemon.DataDir(t), "--database", url, "--listen", "127.0.0.1:0", "--no-preflight", "--uid-base", strconv.Itoa(daemon.UIDBase()), "--uid-count", "50")
	if code != 5 || !strings.Contains(out, "another stasis uses this database") {
		t.Errorf("a second daemon: exit %d\n%s", code, out)
	}

	d.Stop(t)
	d.Restart(t)
	s = beginAs(t, d, key, obj{"restore_default_environment_from_user_id": "ada"})
	w = dial(t, s.CDP)
	page = w.attach(w.tab(site.URL + "/"))
	loggedIn := func() {
		t.Helper()
		w.awaitRestored(page)
		if got := w.eval(page, `document.cookie + localStorage.getItem("kept")`); got != "login=yesyes" {
			t.Errorf("the page has %q", got)
		}
	}
	loggedIn()

	// The server ends, as in a crash, with all connections.
	server.Kill()
	before := len(runDirs(t, d))
	unavailable(t, d.CallAs(t, key, http.MethodGet, "/v1/sessions/"+s.ID, nil))
	unavailable(t, d.CallAs(t, key, http.MethodPost, "/v1/sessions", obj{}))
	unavailable(t, d.CallAs(t, key, http.MethodDelete, "/v1/sessions/"+s.ID+"?"+toFiles, nil))
	unavailable(t, d.Call(t, http.MethodGet, "/readyz", nil))
	if now := len(runDirs(t, d)); now != before {
		t.Errorf("%d run directories, %d before", now, before)
	}
	loggedIn()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	daemon.Eventually(t, grace, "the daemon is ready again", func() bool {
		return d.Call(t, http.MethodGet, "/readyz", nil).Status == http.StatusOK
	})

	// The server stops without a word.
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	unavailable(t, d.CallAs(t, key, http.MethodGet, "/v1/sessions", nil))
	loggedIn()
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	daemon.Eventually(t, grace, "the session is saved", func() bool {
		a := d.CallAs(t, key, http.MethodDelete, "/v1/sessions/"+s.ID+"?"+toFiles+andDefault, nil)
		if a.Status != http.StatusOK {
			unavailable(t, a)
		}
		return a.Status == http.StatusOK
	})
	again := beginAs(t, d, key, obj{"restore_default_environment_from_user_id": "ada"})
	w = dial(t, again.CDP)
	page = w.attach(w.tab(site.URL + "/"))
	loggedIn()
	finish(t, d, again.ID, throwAway)
	if strings.Contains(d.Log(), postgrestest.Password) || strings.Contains(d.Log(), "p-a%20s%25s") {
		t.Error("the log has the password")
	}
}

// A save whose commit finds no catalogue loses nothing: the session continues under the same
// cdp_url, and can be saved when the catalogue is back.
func TestPostgresSave(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true, Env: []string{"STASIS_DATABASE=" + server.URL("stasis")}, Args: shellUnlessLong()})
	site := apps.StartProbe(t)
	s := begin(t, d, obj{"user_id": "ada"})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	w.eval(page, `document.cookie = "login=yes; max-age=100000"; 1`)

	// Every commit of a snapshot waits for this lock, and then finds its connection gone.
	release := lockTable(t, server, "commits")
	answered := make(chan daemon.Answer, 1)
	go func() { answered <- d.Call(t, http.MethodDelete, "/v1/sessions/"+s.ID+"?"+toFiles+andDefault, nil) }()
	daemon.Eventually(t, grace, "the commit waits", func() bool { return lockAwaited(t, server) })
	server.Kill()
	release()
	unavailable(t, <-answered)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	daemon.Eventually(t, grace, "the session continues", func() bool {
		a := d.Call(t, http.MethodGet, "/v1/sessions/"+s.ID, nil)
		return a.Status == http.StatusOK && !strings.Contains(string(a.Body), `"error"`)
	})
	daemon.Eventually(t, grace, "the daemon has its lock of the database again", func() bool {
		return d.Call(t, http.MethodPatch, "/v1/users/ada", obj{"standby": 0}).Status == http.StatusOK
	})
	w = dial(t, s.CDP)
	page = w.attach(w.tab(site.URL + "/"))
	w.awaitRestored(page)
	if got := w.eval(page, `document.cookie`); got != "login=yes" {
		t.Errorf("the page has %q", got)
	}
	if e := finish(t, d, s.ID, toFiles+andDefault); e.Default == nil || e.Default.Version != 1 {
		t.Errorf("the end: %+v", e)
	}
	// Nobody knew whether another snapshot has the first archive, so it stayed.
	d.Stop(t)
	url := server.URL("stasis")
	code, out := stasis(t, nil, "store", "check", "--data-dir", d.Dir, "--database", url, "--remove-orphans", "--grace", "0s")
	if archives := files(t, d.Dir+"/snapshots/archives"); len(archives) != 1 {
		t.Errorf("the store has %d archives: %q; store check ended with %d: %s", len(archives), archives, code, out)
	}

	// A backup has the catalogue as a file; the catalogue moves to another file too.
	target := t.TempDir() + "/backup"
	if code, out := stasis(t, nil, "backup", target, "--data-dir", d.Dir, "--database", url); code != 0 || !strings.Contains(out, "1 snapshot") {
		t.Errorf("the backup ended with %d: %s", code, out)
	}
	moved := d.Dir + "/moved.db"
	if code, out := stasis(t, nil, "database", "copy", url, moved); code != 0 || !strings.Contains(out, "compared each") {
		t.Fatalf("the copy ended with %d: %s", code, out)
	}
	if code, out := stasis(t, nil, "database", "copy", target+"/stasis.db", url); code != 2 || !strings.Contains(out, "not empty") {
		t.Errorf("a copy onto a catalogue in use ended with %d: %s", code, out)
	}
	back := daemon.Start(t, daemon.Options{NoSpares: true, Dir: d.Dir, Args: append(shellUnlessLong(), "--database", moved)})
	again := begin(t, back, obj{"restore_default_environment_from_user_id": "ada"})
	w = dial(t, again.CDP)
	page = w.attach(w.tab(site.URL + "/"))
	w.awaitRestored(page)
	if got := w.eval(page, `document.cookie`); got != "login=yes" {
		t.Errorf("restored from the moved catalogue: %q", got)
	}
	finish(t, back, again.ID, throwAway)
	if code, out := stasis(t, nil, "database", "copy", moved, d.Dir+"/other.db"); code != 5 {
		t.Errorf("a copy of a catalogue in use ended with %d: %s", code, out)
	}
}

// A daemon that is stopped while its database is away keeps what its sessions have. The next
// start rescues it.
func TestPostgresStop(t *testing.T) {
	t.Parallel()
	server := startPostgres(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true, Env: []string{"STASIS_DATABASE=" + server.URL("stasis")}, Args: shellUnlessLong()})
	site := apps.StartProbe(t)
	s := begin(t, d, obj{"user_id": "ada"})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	w.eval(page, `document.cookie = "login=yes; max-age=100000"; 1`)
	server.Kill()
	if err := syscall.Kill(d.PID(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithTimeout(t.Context(), grace)
	defer cancel()
	_ = d.Wait(ended) // it reports that it could not save
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	d.Restart(t)
	d.Rescued(t)
	back := begin(t, d, obj{"restore_from_session_id": s.ID})
	w = dial(t, back.CDP)
	page, _ = w.page()
	w.open(page, site.URL+"/") // a rescue of the profile may have no tabs
	if got := w.eval(page, `document.cookie`); got != "login=yes" {
		t.Errorf("rescued: %q", got)
	}
	finish(t, d, back.ID, throwAway)
}

// lockAwaited reports whether a statement waits for the lock of the table of commits.
func lockAwaited(t *testing.T, s *postgrestest.Server) bool {
	t.Helper()
	err := s.Exec(t.Context(), "stasis", "SELECT 1 / (SELECT COUNT(*) FROM pg_locks WHERE NOT granted AND relation = 'commits'::regclass)")
	return err == nil
}

// lockTable locks a table against every other connection, until release is called.
func lockTable(t *testing.T, s *postgrestest.Server, table string) (release func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Exec(ctx, "stasis", "BEGIN", "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE", "SELECT pg_sleep(300)") // ended by release
	}()
	daemon.Eventually(t, grace, "the table is locked", func() bool {
		return s.Exec(t.Context(), "stasis", "SELECT 1 / (SELECT COUNT(*) FROM pg_locks WHERE relation = '"+table+"'::regclass AND mode = 'AccessExclusiveLock' AND granted)") == nil
	})
	return func() { cancel(); <-done }
}
