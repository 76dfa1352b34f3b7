package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
)

// TestEgressLists narrows what sessions may connect to, by the create and by the user's
// settings, on every path on which a session can get its Chrome.
func TestEgressLists(t *testing.T) {
	t.Parallel()
	egressLists(t, byRoot)
}

// TestEgressListsOrdinary is TestEgressLists on the daemon of an ordinary user.
func TestEgressListsOrdinary(t *testing.T) {
	t.Parallel()
	egressLists(t, byOrdinaryUserWithTun)
}

func egressLists(t *testing.T, as runAs) {
	d := daemon.Start(t, as(t, daemon.Options{Args: []string{"--egress", "required", "--trusted-proxy", "192.0.2.1/32", "--allow-private", "127.0.0.0/16,127.77.0.0/16"}, Standby: 1, ShellSpare: true}))
	open, closed, private := newVictimAt(t, "127.77.0.1"), newVictimAt(t, "127.0.0.1"), newVictimAt(t, "127.88.0.1")
	// reaches reports which of the servers a session's page can load.
	reaches := func(s liveSession) (names string) {
		t.Helper()
		w := dial(t, s.CDP)
		defer w.close()
		page, _ := w.page()
		for _, server := range []struct {
			name string
			at   *victim
			host string
		}{{"open ", open, "127.77.0.1"}, {"closed ", closed, "127.0.0.1"}, {"private ", private, "127.88.0.1"}} {
			var got struct{ ErrorText string }
			w.call(page, "Page.navigate", obj{"url": server.at.url(server.host, "page")}, &got)
			if got.ErrorText == "" {
				names += server.name
			}
		}
		return names
	}
	expect := func(name, want string, s liveSession) {
		t.Helper()
		if got := reaches(s); got != want {
			t.Errorf("%s: reaches %q, want %q", name, got, want)
		}
	}
	both := "open closed "
	for _, engine := range []string{"chrome", "shell"} {
		user := "user-" + engine
		settings := func(egress any) {
			d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/"+user, obj{"egress": egress})
		}
		create := func(more obj) liveSession {
			body := obj{"engine": engine, "user_id": user}
			for name, value := range more {
				body[name] = value
			}
			return begin(t, d, body)
		}
		allow, deny := obj{"allow": []string{"127.77.0.0/16"}}, obj{"deny": []string{"127.0.0.1", "10.9.0.0/16"}}

		first := create(nil)
		expect(engine+", no list", both, first)
		finish(t, d, first.ID, "save_snapshot_mode=memory&save_as_default=true")
		fromDefault := obj{"restore_default_environment_from_user_id": user, "egress": deny}
		parked := create(fromDefault)
		expect(engine+", parked", "open ", parked)
		finish(t, d, parked.ID, throwAway)
		// Then from a spare, if one is ready, else from a Chrome that starts.
		files := create(fromDefault)
		expect(engine+", from files", "open ", files)
		wants(t, d.Call(t, http.MethodPost, "/v1/sessions", obj{"engine": engine, "restore_default_environment_from_user_id": user, "on_live": "share", "egress": allow}), http.StatusConflict, "environment_in_use")
		wants(t, d.Call(t, http.MethodPost, "/v1/sessions", obj{"engine": engine, "restore_default_environment_from_user_id": user, "on_live": "share", "egress": obj{"deny": []string{"10.9.0.0/16", "127.0.0.1"}}}), http.StatusOK, "")
		finish(t, d, files.ID, throwAway)
		ready := strings.Count(d.Log(), "a standby Chrome is ready")
		d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/"+user, obj{"standby": 1})
		daemon.Eventually(t, backgroundDeadline, "a standby Chrome is ready", func() bool { return strings.Count(d.Log(), "a standby Chrome is ready") > ready })
		standby := create(fromDefault)
		if r := standby.Restored; r == nil || r.Path != restore.PathStandby {
			t.Errorf("%s: restored as %+v", engine, r)
		}
		expect(engine+", standby", "open ", standby)
		finish(t, d, standby.ID, throwAway)
		d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/"+user, obj{"standby": 0})

		// A proxy does not lead around the lists of the user.
		proxy := newVictimAt(t, "127.77.0.1")
		for address, reached := range map[string]bool{"127.77.0.1": true, "127.0.0.1": false} {
			at := proxy
			if !reached {
				at = newVictimAt(t, "127.0.0.1")
			}
			s := create(obj{"egress": deny, "proxy": obj{"server": strings.TrimSuffix(at.url(address, ""), "/"), "bypass": "<-loopback>"}})
			w := dial(t, s.CDP)
			page, _ := w.page()
			w.try(page, "Page.navigate", obj{"url": "http://site.example/through"})
			if at.reached("through") != reached {
				t.Errorf("%s: a proxy at %s was used: %v", engine, address, !reached)
			}
			w.close()
			refused := func() bool {
				return slices.ContainsFunc(historyOf(t, d, s.ID)[0].events, func(e apiEvent) bool {
					return e.Type == "egress_refused" && e.Data["protocol"] == "tcp" && e.Data["address"] == fmt.Sprintf("%s:%d", address, at.port)
				})
			}
			if !reached {
				daemon.Eventually(t, grace, engine+": an event says that a proxy at "+address+" was refused", refused)
			}
			finish(t, d, s.ID, throwAway)
			if refused() == reached {
				t.Errorf("%s: an event says that a proxy at %s was refused: %v", engine, address, reached)
			}
		}

		s := create(obj{"egress": allow})
		expect(engine+", allowed by the create", "open ", s)
		finish(t, d, s.ID, toFiles)
		d.Must(t, http.StatusOK, http.MethodPost, at(s.ID, "/resume"), nil)
		expect(engine+", resumed", "open ", look(t, d, s.ID))
		finish(t, d, s.ID, throwAway)

		settings(deny)
		s = create(obj{"egress": obj{"allow": []string{"127.0.0.0/16"}}})
		expect(engine+", denied by the user's settings", "", s)
		finish(t, d, s.ID, throwAway)
		settings(nil) // a change keeps what it does not name
		settings(obj{"allow_private": []string{"127.88.0.1"}})
		s = create(nil)
		expect(engine+", a private network of the user's settings", both+"private ", s)
		finish(t, d, s.ID, throwAway)
		settings(nil)
		s = create(obj{"session_id": "after-" + engine})
		expect(engine+", without settings", both, s)
		finish(t, d, s.ID, throwAway)
	}

	for field, body := range map[string]obj{
		"egress.allow[1]": {"egress": obj{"allow": []string{"127.0.0.1", "http://example.com"}}},
		"egress.allow[2]": {"egress": obj{"allow": []string{"example.com", "*.example.com", "*"}}},
		"egress.deny[0]":  {"egress": obj{"deny": []string{"::ffff:10.0.0.0/104"}}},
	} {
		wants(t, d.Call(t, http.MethodPost, "/v1/sessions", body), http.StatusUnprocessableEntity, "invalid_field")
		if got := string(d.Call(t, http.MethodPost, "/v1/sessions", body).Body); !strings.Contains(got, field) {
			t.Errorf("the answer does not name %s: %s", field, got)
		}
	}
	alice := newKey(t, d, "alice")
	wants(t, d.CallAs(t, alice, http.MethodPatch, "/v1/users/alice", obj{"egress": obj{"allow_private": []string{"0.0.0.0/0"}}}), http.StatusForbidden, "forbidden")
	wants(t, d.CallAs(t, alice, http.MethodPatch, "/v1/users/alice", obj{"standby": 1, "egress": nil}), http.StatusOK, "")
}

// A daemon that cannot limit addresses starts no session that asks for it.
func TestEgressListsNotLimited(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--egress", "off"}})
	for _, engine := range []string{"chrome", "shell"} {
		for _, denied := range []string{"10.0.0.0/8", "*.example.com"} {
			wants(t, d.Call(t, http.MethodPost, "/v1/sessions", obj{"engine": engine, "egress": obj{"deny": []string{denied}}}), http.StatusUnprocessableEntity, "unsupported")
		}
	}
	if n := len(mains(d)); n > 0 {
		t.Errorf("%d Chromes are left", n)
	}
}
