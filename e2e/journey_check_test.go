package e2e

import (
	"net/http"
	"testing"

	"github.com/stasisd/stasis/cmd/stasis/demosite"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
	sessionsave "github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// A user's settings say how to check a login. Then the user's default stays logged in,
// whatever sessions save, until the site itself ends the login. A check reports that.
func loginCheck(t *testing.T, d *daemon.Daemon) {
	const user = "/v1/users/checked%2Fada"
	site := apps.StartProbe(t)
	mine, byDefault := body{"user_id": "checked/ada"}, body{"restore_default_environment_from_user_id": "checked/ada"}
	check := func() (o login.Outcome) {
		t.Helper()
		d.Must(t, http.StatusOK, http.MethodPost, user+"/default/check", nil).Into(t, &o)
		return o
	}
	notMoved := func(what string, a sessionsave.EndAnswer, version int64) {
		t.Helper()
		if a.Snapshot == nil || a.Default == nil || a.Default.Moved || a.Default.Version != version ||
			a.Default.Reason != "login_check_failed" || a.Default.LoginCheck == nil || a.Default.LoginCheck.LoggedIn {
			t.Fatalf("%s: %+v, default %+v", what, a, a.Default)
		}
	}
	d.Must(t, http.StatusOK, http.MethodPatch, user, body{"login_check": body{"url": site.URL + "/me?secret=1", "status": 200,
		"text": "Logged in as " + demosite.User, "cookie": "sid", "before_default": true, "timeout_seconds": 60}})
	if a := d.Call(t, http.MethodPost, user+"/default/check", nil); a.Code() != "default_not_found" {
		t.Errorf("a check without a default: %d %s", a.Status, a.Body)
	}

	// Without a login, nothing becomes the default.
	s := create(t, d, mine)
	notMoved("before the login", end(t, d, s.ID, "save_snapshot_mode=filesystem&save_as_default=true"), 0)

	// With a login it does, and the check leaves no tab behind.
	s = create(t, d, mine)
	drive(t, chromeDP, s.CDP, visit(site.URL+"/login"), fill("#user", demosite.User), fill("#password", demosite.Password),
		click("#submit"), await(`document.title === "me: `+demosite.User+`"`))
	a := end(t, d, s.ID, "save_snapshot_mode=filesystem&save_as_default=true")
	if a.Default == nil || !a.Default.Moved || a.Default.LoginCheck == nil || !a.Default.LoginCheck.LoggedIn {
		t.Fatalf("with the login: %+v, default %+v", a, a.Default)
	}
	good := a.Snapshot
	for _, line := range good.Components {
		if line.Name == state.ComponentTabs && line.Saved != 1 {
			t.Errorf("%d tabs were saved", line.Saved)
		}
	}
	if l := good.Logins; len(l) != 1 || l[0].Site != "127.0.0.1" || l[0].Basis != state.BasisSessionCookie || l[0].ExpectedEnd != nil {
		t.Errorf("logins: %+v", l)
	}

	// A session whose cookies were removed does not become the default: not with force,
	// not if it is persistent, and not if it is frozen.
	for _, x := range []struct {
		what, query string
		persist     bool
	}{
		{"by force", "save_snapshot_mode=filesystem&save_as_default=true&default_conflict=overwrite", false},
		{"in memory", "save_snapshot_mode=memory&save_as_default=true", false},
		{"by persisting", "", true},
	} {
		s := create(t, d, body{"restore_default_environment_from_user_id": "checked/ada", "persist": x.persist})
		w := dial(t, s.CDP)
		w.call("", "Storage.clearCookies", nil, nil)
		w.close()
		if x.persist {
			d.Must(t, http.StatusOK, http.MethodPost, "/v1/sessions/"+s.ID+"/pause", nil)
		}
		notMoved(x.what, end(t, d, s.ID, x.query), 1)
	}
	if now, version := defaultOf(t, d, "checked/ada"); now != good.ID || version != 1 {
		t.Errorf("the default is %s, version %d", now, version)
	}

	// The saved snapshots are whole, including the tar, and too new for any retention
	// policy.
	var whole library.VerifyResult
	d.Must(t, http.StatusOK, http.MethodPost, "/v1/snapshots/"+good.ID+"/verify", nil).Into(t, &whole)
	if !whole.OK || !whole.Checked.State || whole.Checked.Entries == 0 {
		t.Errorf("verified: %+v", whole)
	}
	d.Must(t, http.StatusOK, http.MethodPatch, user, body{"retention": body{"keep_last": 1}})
	var kept library.PruneAnswer
	d.Must(t, http.StatusOK, http.MethodPost, "/v1/prune", body{"user_id": "checked/ada"}).Into(t, &kept)
	if kept.RemovedCount != 0 || kept.KeptBy[library.KeptGrace] != 5 || kept.KeptBy[library.KeptDefault] != 1 {
		t.Errorf("pruned: %+v", kept)
	}
	d.Must(t, http.StatusOK, http.MethodGet, user+"/default/history", nil)

	// The old default is still logged in, and the check says so.
	if o := check(); !o.LoggedIn || o.URL == nil || *o.URL != site.URL+"/me" || *o.Status != 200 || len(o.Conditions) != 3 || *o.Version != 1 || *o.SnapshotID != good.ID {
		t.Errorf("the check of a good default: %+v", o)
	}
	s = create(t, d, byDefault)
	drive(t, chromeDP, s.CDP, visit(site.URL+"/me"), await(`document.title === "me: `+demosite.User+`"`),
		click("#logout"), await(`document.title === "nobody"`)) // the site ends the login
	end(t, d, s.ID, "")

	// Now the default is logged out.
	o := check()
	if o.LoggedIn || *o.Status != 401 || o.Conditions[0].Held || !o.Conditions[2].Held {
		t.Errorf("the check after the site forgot it: %+v", o)
	}
	var answer struct {
		Last *login.Outcome `json:"last_check"`
	}
	d.Must(t, http.StatusOK, http.MethodGet, user+"/default", nil).Into(t, &answer)
	if answer.Last == nil || answer.Last.LoggedIn || !answer.Last.CheckedAt.Equal(o.CheckedAt) {
		t.Errorf("last_check: %+v", answer.Last)
	}
	d.Must(t, http.StatusOK, http.MethodPatch, user, body{"login_check": nil})
	if a := d.Call(t, http.MethodPost, user+"/default/check", nil); a.Code() != "no_login_check" {
		t.Errorf("a check of nothing: %d %s", a.Status, a.Body)
	}
}
