package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/profiles"
)

// over waits until a session has ended and returns it.
func over(t testing.TB, d *daemon.Daemon, id string) created {
	t.Helper()
	var s created
	daemon.Eventually(t, stepDeadline, "session "+id+" has ended", func() bool {
		s = see(t, d, id)
		return s.Status == "terminated" || s.Status == "completed" || s.Status == "error"
	})
	return s
}

// An idle session is ended and rescued. Its environment is kept for a day, is not a
// default, and can be restored.
func idleSessionIsRescued(t *testing.T, d *daemon.Daemon) {
	site := apps.StartProbe(t)
	s := create(t, d, body{"idle_timeout_seconds": 20, "user_id": "idle"})
	drive(t, chromeDP, s.CDP, visit(site.URL+"/set?v=one"), await(`document.title === "set"`))
	was := over(t, d, s.ID)
	if was.Status != "terminated" || was.Why != profiles.ReasonIdle {
		t.Errorf("the idle session: %+v", was)
	}
	o := was.Outcome
	if o == nil || o.Snapshot == nil || !o.Snapshot.Rescue || o.Snapshot.ExpiresAt == nil {
		t.Fatalf("its outcome: %+v", o)
	}
	if kept := o.Snapshot.ExpiresAt.Sub(o.Snapshot.CreatedAt); kept != 24*time.Hour {
		t.Errorf("the rescue snapshot is kept for %s", kept)
	}
	if snapshot, _ := defaultOf(t, d, "idle"); snapshot != "" {
		t.Error("a rescue moved the default")
	}
	r := create(t, d, body{"restore_from_session_id": s.ID})
	drive(t, chromeDP, r.CDP, visit(site.URL+"/check"), await(checked),
		await(`window.__state.cookie_session === "one" && window.__state.idb_value === "one"`))
	end(t, d, r.ID, "")
}

// A session that must not be saved is not. A later restore of it fails unless it may be
// fresh.
func timeoutMayDiscard(t *testing.T, d *daemon.Daemon) {
	s := create(t, d, body{"idle_timeout_seconds": 1, "on_timeout": "discard"})
	if was := over(t, d, s.ID); was.Status != "terminated" || was.Outcome == nil || was.Outcome.Snapshot != nil {
		t.Errorf("the idle session: %+v", was)
	}
	from := body{"restore_from_session_id": s.ID}
	if a := d.Call(t, http.MethodPost, "/v1/sessions", from); a.Status != http.StatusConflict || a.Code() != "no_snapshot" {
		t.Errorf("restoring it: %d %s", a.Status, a.Body)
	}
	from["if_missing"] = "fresh"
	if r := create(t, d, from); r.Restored != nil {
		t.Errorf("a fresh session was restored: %+v", r.Restored)
	}
}

// The lifetime limit ends a session even if a client is connected. The idle limit does
// not.
func lifetime(t *testing.T, d *daemon.Daemon) {
	s := create(t, d, body{"idle_timeout_seconds": 20, "max_lifetime_seconds": 25})
	w := dial(t, s.CDP)
	w.call("", "Browser.getVersion", nil, nil)
	if code := w.ended(); code != 4001 {
		t.Errorf("the client's socket was closed with %d", code)
	}
	was := over(t, d, s.ID)
	if was.Status != "terminated" || was.Why != profiles.ReasonLifetime || was.Outcome == nil || was.Outcome.Snapshot == nil || !was.Outcome.Snapshot.Rescue {
		t.Errorf("the session: %+v", was)
	}
}

// A persistent session is saved and moves the default, however it ends.
func TestPersist(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell"}})
	version := int64(0)
	for name, ends := range map[string]func(created){
		"by a delete that saves nothing": func(s created) { end(t, d, s.ID, "") },
		"by a delete that saves":         func(s created) { save(t, d, s.ID, "memory") },
		"idle":                           func(s created) { over(t, d, s.ID) },
		"by the daemon's stop":           func(created) { restart(t, d) },
	} {
		b := body{"user_id": "ada", "persist": true}
		if name == "idle" {
			b["idle_timeout_seconds"] = 1
		}
		s := create(t, d, b)
		ends(s)
		o := see(t, d, s.ID).Outcome
		snapshot, now := defaultOf(t, d, "ada")
		if o == nil || o.Snapshot == nil || o.Snapshot.Rescue || o.Snapshot.ID != snapshot || now != version+1 {
			t.Errorf("%s: outcome %+v, default %s in version %d after %d", name, o, snapshot, now, version)
		}
		version = now
	}
}
