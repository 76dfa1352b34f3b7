package e2e

import (
	"database/sql"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/login"
)

// TestWebhooksAndLoginsKeptAlive: a receiver gets the webhooks of sessions, despite its
// own failures and a kill of the daemon. An unused default is kept logged in on a site
// that changes its token at each visit. The end of that login is reported. The daemon uses
// the shell, which starts faster.
func TestWebhooksAndLoginsKeptAlive(t *testing.T) {
	t.Parallel()
	const user, secretUser = "/v1/users/ada%20lovelace", "ada lovelace"
	d := daemon.Start(t, daemon.Options{Args: []string{"--webhook-allow-private", "--max-sessions", "4", "--engine", "shell"}, NoSpares: true})
	site, hooks := newRotating(t), newReceiver(t)
	hooks.trust(t, d.Dir)
	mine := obj{"webhook_url": hooks.URL, "user_id": secretUser}

	// A login is saved. The receiver fails at the first delivery and gets it again.
	refused := false
	hooks.answers(func(h receivedWebhook) int {
		if h.Event == "session.saved" && !refused {
			refused = true
			return http.StatusInternalServerError
		}
		return http.StatusNoContent
	})
	first := begin(t, d, mine)
	w := dial(t, first.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/login")
	w.open(page, site.URL+"/news")
	w.close()
	finish(t, d, first.ID, toFiles+andDefault)
	hooks.waits(t, "session.created", first.ID, 1)
	hooks.waits(t, "session.deleted", first.ID, 1)

	// One session crashes.
	lost := begin(t, d, mine)
	kill9(t, mains(d)[0])
	hooks.waits(t, "session.crashed", lost.ID, 1)
	if h := hooks.waits(t, "session.deleted", lost.ID, 1)[0]; h.Session.Status != "error" || h.Session.UserID != secretUser {
		t.Errorf("webhook of the crash: %+v", h)
	}
	saved := hooks.waits(t, "session.saved", first.ID, 2)
	if saved[0].ID != saved[1].ID || saved[0].status != http.StatusInternalServerError {
		t.Errorf("second delivery: %+v", saved)
	}

	// The daemon is killed while a webhook is queued. The next daemon sends it.
	d.Must(t, http.StatusOK, http.MethodPatch, user, obj{"login_check": obj{"url": site.URL + "/account", "status": 200, "selector": "#in", "check_every_seconds": 3600, "timeout_seconds": 60}})
	hooks.answers(func(receivedWebhook) int { return 0 })
	killed := begin(t, d, mine)
	pending := hooks.waits(t, "session.created", killed.ID, 1)[0]
	d.Kill(t)
	hooks.answers(nil)
	older(t, d)
	d.Restart(t)
	if again := hooks.waits(t, "session.created", killed.ID, 2); again[1].ID != pending.ID {
		t.Errorf("the next daemon sends %s, want %s", again[1].ID, pending.ID)
	}
	hooks.waits(t, "session.deleted", killed.ID, 1)

	// It also finds that the default is due for a check.
	check := lastCheck(t, d, user, 2)
	now, version := defaultOf(t, d, secretUser)
	if !check.LoggedIn || *check.SnapshotID != now || version != 2 || site.seen() != 1 {
		t.Errorf("%+v, the default is %s, version %d, %d looks", check, now, version, site.seen())
	}
	s := begin(t, d, obj{"restore_default_environment_from_user_id": secretUser})
	w = dial(t, s.CDP)
	page, _ = w.page()
	daemon.Eventually(t, grace, "the tab is restored", func() bool { return w.eval(page, `document.title`) == "news" })
	if w.open(page, site.URL+"/account"); w.eval(page, `document.title`) != "account" {
		t.Errorf("a session from it is %q", w.eval(page, `document.body.innerText`))
	}
	w.close()
	finish(t, d, s.ID, throwAway)

	// A daemon that is killed during a check leaves nothing, and the default unchanged.
	d.Stop(t)
	older(t, d)
	site.hold()
	looks := site.seen()
	d.Restart(t)
	daemon.Eventually(t, grace, "a check visits the site", func() bool { return site.seen() > looks })
	d.Kill(t)
	nothingRuns(t, d, afterKill)

	// Then the site ends the login. The default stays, and one webhook reports it.
	site.forget()
	d.Restart(t)
	over := hooks.waits(t, "user.login_expired", "", 1)[0]
	if check = lastCheck(t, d, user, 2); check.LoggedIn || check.LoggedOutSince == nil || over.Session.UserID != secretUser {
		t.Errorf("%+v, webhook %+v", check, over)
	}
	if at, version := defaultOf(t, d, secretUser); at != now || version != 2 {
		t.Errorf("the default is %s, version %d", at, version)
	}
	nothingLeft(t, d)
	var list []liveSession
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions?user_id=ada%20lovelace", nil).Into(t, &list)
	if len(list) != 5 { // four from creates, and one that the check saved
		t.Errorf("%d sessions: %+v", len(list), list)
	}

	// Each webhook can be sent again on request.
	d.Must(t, http.StatusOK, http.MethodPost, "/v1/webhooks/deliveries/"+over.ID+"/resend", nil)
	if again := hooks.waits(t, "user.login_expired", "", 2); again[1].ID != over.ID || len(again) != 2 {
		t.Errorf("sent again: %+v", again)
	}

	// The metrics contain no names.
	metrics := string(d.CallAs(t, "", http.MethodGet, "/metrics", nil).Body)
	for _, want := range []string{`stasis_login_checks_total{outcome="logged_out"} 1`, "stasis_logins_expired_total 1", "stasis_sessions_live 0"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s:\n%s", want, metrics)
		}
	}
	for _, secret := range []string{"lovelace", first.ID, killed.ID, now, over.ID, daemon.Key, strings.TrimPrefix(site.URL, "http://"), d.Dir} {
		if strings.Contains(metrics, secret) {
			t.Errorf("the metrics contain %s", secret)
		}
	}
}

// older moves all times in the catalogue of a stopped daemon two hours back.
func older(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(d.Dir, "stasis.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // all writes are committed
	for _, change := range []string{"UPDATE defaults SET moved_at = moved_at - ?1", "UPDATE sessions SET ended_at = ended_at - ?1 WHERE ended_at > 0",
		"UPDATE users SET login_checked = NULL WHERE ?1 > 0"} {
		if _, err := db.Exec(change, 2*time.Hour.Nanoseconds()); err != nil {
			t.Fatal(err)
		}
	}
}

// lastCheck waits for the result of a check of a version.
func lastCheck(t *testing.T, d *daemon.Daemon, user string, version int64) login.Outcome {
	t.Helper()
	var answer struct {
		Last *login.Outcome `json:"last_check"`
	}
	daemon.Eventually(t, grace, "a check", func() bool {
		d.Must(t, http.StatusOK, http.MethodGet, user+"/default", nil).Into(t, &answer)
		return answer.Last != nil && *answer.Last.Version == version
	})
	return *answer.Last
}
