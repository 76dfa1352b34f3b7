package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// TestAttackNeverAllowed makes a page connect to what no policy allows: metadata addresses
// and the daemon's own port. The daemon listens on loopback, so pages may connect to other
// private addresses.
func TestAttackNeverAllowed(t *testing.T) {
	t.Parallel()
	for name, as := range map[string]runAs{"root": byRoot, "ordinary user": byOrdinaryUserWithTun} {
		t.Run(name, func(t *testing.T) {
			d := daemon.Start(t, as(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell", "--egress", "required"}}))
			s := begin(t, d, obj{})
			w := dial(t, s.CDP)
			page, _ := w.page()
			w.open(page, newVictim(t).url("127.0.0.1", "allowed"))
			own := strings.TrimPrefix(d.URL, "http://")
			_, port, err := net.SplitHostPort(own)
			if err != nil {
				t.Fatal(err)
			}
			for _, host := range []string{own, "localhost:" + port, "[::ffff:127.0.0.1]:" + port, "169.254.169.254", "[::ffff:a9fe:a9fe]", "2852039166", "100.100.100.200", "168.63.129.16"} {
				w.eval(page, fmt.Sprintf(`fetch("http://%s/openapi.yaml", {mode: "no-cors"}).catch(() => 0), 1`, host))
			}
			for what, address := range map[string]string{"the daemon": own, "metadata": "169.254.169.254:80", "metadata of another provider": "100.100.100.200:80"} {
				daemon.Eventually(t, grace, "an event says that this was refused: "+what+" at "+address, func() bool {
					for _, e := range historyOf(t, d, s.ID)[0].events {
						if e.Type == "egress_refused" && e.Data["address"] == address {
							return true
						}
					}
					return false
				})
			}
			if strings.Contains(d.Log(), "route=/openapi.yaml") {
				t.Error("a page reached the daemon")
			}
		})
	}
}

// TestAttackLoginChecks makes the daemon open an address for a user, which the policy does
// not allow.
func TestAttackLoginChecks(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell", "--egress", "required", "--allow-private", allowedNetwork}})
	alice := newKey(t, d, "alice")
	site := newVictim(t)
	s := beginAs(t, d, alice, obj{})
	finish(t, d, s.ID, toFiles+andDefault)
	check := func(host string) {
		t.Helper()
		d.CallAs(t, alice, http.MethodPatch, "/v1/users/alice", obj{"login_check": obj{"url": site.url(host, host), "status": 200}})
		var outcome struct {
			LoggedIn bool `json:"logged_in"`
		}
		d.CallAs(t, alice, http.MethodPost, "/v1/users/alice/default/check", nil).Into(t, &outcome)
		if allowed := host == "127.77.0.1"; outcome.LoggedIn != allowed || site.reached(host) != allowed {
			t.Errorf("a login check at %s: %+v, reached: %v", host, outcome, site.reached(host))
		}
	}
	check("127.77.0.1")
	check("127.0.0.1")
	if site.reached("127.0.0.1") {
		t.Error("a login check reached a private address")
	}
}

// TestAttackReceivers has webhooks sent to a private address, and to a receiver that
// redirects to one.
func TestAttackReceivers(t *testing.T) {
	t.Parallel()
	inside := newVictim(t)
	redirecting := httptest.NewServer(http.RedirectHandler(inside.url("127.0.0.1", "redirected"), http.StatusTemporaryRedirect))
	t.Cleanup(redirecting.Close)
	for _, c := range []struct {
		args         []string
		url, refused string
		path, says   string
	}{
		{nil, inside.url("localhost", "sent"), "the address is private", "sent", "a webhook reached a private address"},
		{[]string{"--webhook-allow-private"}, redirecting.URL, "the receiver answered 307", "redirected", "a redirect was followed"},
	} {
		d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Args: append([]string{"--engine", "shell"}, c.args...)}))
		alice := newKey(t, d, "alice")
		s := beginAs(t, d, alice, obj{"webhook_url": c.url})
		var why string
		daemon.Eventually(t, grace, "a webhook was tried", func() bool {
			var list []struct {
				LastError string `json:"last_error"`
				Attempts  int
			}
			d.CallAs(t, alice, http.MethodGet, "/v1/webhooks/deliveries", nil).Into(t, &list)
			for _, l := range list {
				why = l.LastError
				if l.Attempts > 0 {
					return true
				}
			}
			return false
		})
		if inside.reached(c.path) {
			t.Error(c.says)
		}
		if !strings.Contains(why, c.refused) {
			t.Errorf("the delivery failed with %q", why)
		}
		finish(t, d, s.ID, throwAway)
	}
}
