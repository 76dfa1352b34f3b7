package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/restore"
	sessionsave "github.com/stasisd/stasis/session/save"
)

// created is the part of a session's answer that the tests read.
type created struct {
	ID        string                 `json:"session_id"`
	Engine    string                 `json:"engine"`
	Status    string                 `json:"status"`
	Reason    string                 `json:"reason"`
	Why       profiles.ReasonCode    `json:"reason_code"`
	UserID    string                 `json:"user_id"`
	CDP       string                 `json:"cdp_url"`
	ExpiresAt time.Time              `json:"expires_at"`
	Restored  *restore.Report        `json:"restored"`
	Outcome   *sessionsave.EndAnswer `json:"outcome"`
	Restarted bool                   `json:"browser_restarted"`
}

// body is the JSON object of a request.
type body map[string]any

// create makes a session.
func create(t testing.TB, d *daemon.Daemon, b body) created {
	t.Helper()
	var s created
	d.Must(t, http.StatusCreated, http.MethodPost, "/v1/sessions", b).Into(t, &s)
	return s
}

// see reads a session.
func see(t testing.TB, d *daemon.Daemon, id string) created {
	t.Helper()
	var s created
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions/"+id, nil).Into(t, &s)
	return s
}

// end ends a session with a query, such as "save_snapshot_mode=memory".
func end(t testing.TB, d *daemon.Daemon, id, query string) sessionsave.EndAnswer {
	t.Helper()
	var a sessionsave.EndAnswer
	d.Must(t, http.StatusOK, http.MethodDelete, "/v1/sessions/"+id+"?"+query, nil).Into(t, &a)
	if !a.Deleted {
		t.Fatalf("session %s was not ended: %+v", id, a)
	}
	return a
}

// save ends a session and returns its snapshot.
func save(t testing.TB, d *daemon.Daemon, id, mode string, more ...string) *library.SnapshotInfo {
	t.Helper()
	query := "save_snapshot_mode=" + mode
	for _, m := range more {
		query += "&" + m
	}
	a := end(t, d, id, query)
	if a.Snapshot == nil || a.Snapshot.Mode != mode {
		t.Fatalf("session %s was not saved in mode %s: %+v", id, mode, a)
	}
	return a.Snapshot
}

// sparesReady waits until a number of spares is ready.
func sparesReady(t testing.TB, d *daemon.Daemon, n int) {
	t.Helper()
	ready := fmt.Sprintf("\nstasis_chromes_kept{kind=\"spare\"} %d\n", n)
	daemon.Eventually(t, backgroundDeadline, fmt.Sprint(n, " spares are ready"), func() bool {
		return strings.Contains(string(d.CallAs(t, "", http.MethodGet, "/metrics", nil).Body), ready)
	})
}

// restart stops the daemon with SIGTERM and starts it again.
func restart(t testing.TB, d *daemon.Daemon) {
	t.Helper()
	d.Stop(t)
	d.Restart(t)
}

// defaultOf returns the snapshot and version of a user's default; "" and 0 without one.
func defaultOf(t testing.TB, d *daemon.Daemon, user string) (string, int64) {
	t.Helper()
	a := d.Call(t, http.MethodGet, "/v1/users/"+url.PathEscape(user)+"/default", nil)
	if a.Status == http.StatusNotFound {
		return "", 0
	}
	var v struct {
		Snapshot string `json:"snapshot_id"`
		Version  int64
	}
	a.Into(t, &v)
	return v.Snapshot, v.Version
}
