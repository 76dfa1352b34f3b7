package e2e

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
)

// After sessions have ended, no secret is in the log or unencrypted on disk. Messages of
// users and agents, and the addresses of webhooks, are in the catalogue, as
// docs/security.md says, and nowhere else.
func TestLeakSecrets(t *testing.T) {
	t.Parallel()
	const cookie, stored, typed, named = "kekscookie4711", "lokalwert4712", "passwort4713", "titel4714"
	const said, noted, receivedWebhook = "gesagtes4715", "notiertes4716", "hakenschluessel4717"
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: append(shellUnlessLong(), "--log-level", "debug")})
	site := apps.StartProbe(t)
	key := newKey(t, d, "alice")
	var tickets []string
	ticketOf := func(s liveSession) {
		_, ticket, _ := strings.Cut(s.CDP, "ticket=")
		tickets = append(tickets, ticket)
	}
	for _, mode := range []string{toFiles, toMemory} {
		s := beginAs(t, d, key, obj{"webhook_url": "http://127.0.0.1:1/hook?token=" + receivedWebhook})
		ticketOf(s)
		d.Must(t, http.StatusOK, http.MethodPost, at(s.ID, "/message"), obj{"message": said})
		d.Must(t, http.StatusOK, http.MethodPost, "/v1/memory/v2/session", obj{"session_id": s.ID, "key_decisions": []string{noted}})
		w := dial(t, s.CDP)
		page, _ := w.page()
		w.open(page, site.URL+"/?q="+typed)
		w.eval(page, `document.title = "`+named+`"; document.cookie = "c=`+cookie+`; max-age=100000"; localStorage.setItem("l", "`+stored+`"); sessionStorage.setItem("s", "`+stored+`")`)
		finish(t, d, s.ID, mode+andDefault)
	}
	back := beginAs(t, d, key, obj{"restore_default_environment_from_user_id": "alice", "enable_memory_snapshot": false})
	ticketOf(back)
	finish(t, d, back.ID, throwAway)
	// Error messages must not contain secrets either.
	lost := beginAs(t, d, key, obj{"engine": "shell"})
	ticketOf(lost)
	dial(t, strings.Replace(lost.CDP, "/cdp?", "/cdp/page/NOSUCHPAGE?", 1)).ended()
	d.CallAs(t, "stasis_wrong_"+typed, http.MethodGet, "/v1/sessions", nil)
	d.CallAs(t, key, http.MethodPost, at(lost.ID, "/navigate"), obj{"url": "http://127.0.0.1:1/?q=" + typed})
	refusedUpgrade(t, strings.Replace(lost.CDP, "ticket=", "ticket=x", 1), nil)
	var connect struct{ Ticket string }
	d.Must(t, http.StatusCreated, http.MethodPost, "/v1/tickets", nil).Into(t, &connect)
	tickets = append(tickets, connect.Ticket)
	counted := d.CallAs(t, "", http.MethodGet, "/metrics", nil)
	d.Stop(t)

	origin := strings.TrimPrefix(site.URL, "http://")
	secrets := append(tickets, cookie, stored, typed, named, key, daemon.Key)
	catalogued := []string{said, noted, receivedWebhook}
	for _, secret := range append(append(secrets, origin), catalogued...) {
		if strings.Contains(d.Log(), secret) {
			t.Errorf("the log contains %q", secret)
		}
		if counted.Status != http.StatusOK || bytes.Contains(counted.Body, []byte(secret)) {
			t.Errorf("/metrics (status %d) contains %q", counted.Status, secret)
		}
	}
	n := 0
	for _, name := range files(t, d.Dir) {
		raw, err := os.ReadFile(filepath.Join(d.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		n++
		for _, secret := range secrets {
			if bytes.Contains(raw, []byte(secret)) {
				t.Errorf("%s contains %q", name, secret)
			}
		}
		for _, secret := range catalogued {
			if got := bytes.Contains(raw, []byte(secret)); got != (name == "stasis.db") {
				t.Errorf("%s contains %q unencrypted: %v", name, secret, got)
			}
		}
		// The catalogue has origins in its reports. A copied store, which leaves the
		// machine, has none.
		if strings.HasPrefix(name, "snapshots/") && bytes.Contains(raw, []byte(origin)) {
			t.Errorf("%s contains the site's origin", name)
		}
		if info, err := os.Stat(filepath.Join(d.Dir, name)); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	if n < 5 {
		t.Errorf("checked only %d files", n)
	}
}
