package e2e

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/apps/relyingparty"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

const (
	signIn     = `signIn()`
	signedIn   = "ok: ada"
	hasPasskey = `PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable().then(String)`
)

// TestPasskeys: a passkey that was registered in one session signs in in the next, in
// every tab and in frames, and its counter continues. This holds for every restore path,
// and after a session without passkeys. The site verifies every signature. The last
// three sessions use the shell.
func TestPasskeys(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--log-level", "debug"}})
	site := relyingparty.Start(t)
	// says runs steps in a client. The last step of each answer must give its text.
	type answer struct {
		want  string
		steps []step
	}
	after := func(want string, steps ...step) answer { return answer{want, steps} }
	saysTo := func(client, cdpURL string, answers ...answer) {
		t.Helper()
		var steps []step
		for _, a := range answers {
			steps = append(steps, a.steps...)
		}
		got := drive(t, client, cdpURL, steps...)
		last := -1
		for i, a := range answers {
			last += len(a.steps)
			if is := text(t, got[last]); is != a.want {
				t.Fatalf("answer %d of the site is %q, want %q", i+1, is, a.want)
			}
		}
	}
	says := func(cdpURL string, answers ...answer) {
		t.Helper()
		saysTo(chromeDP, cdpURL, answers...)
	}
	front := step{"do": "usePage", "index": 0}
	restored := func(id string, parked bool, more body) created {
		t.Helper()
		b := body{"restore_from_session_id": id}
		for name, value := range more {
			b[name] = value
		}
		s := create(t, d, b)
		if (s.Restored.Path == restore.PathParked) != parked {
			t.Fatalf("restored %s: %s", s.Restored.Path, s.Restored.FallbackReason)
		}
		return s
	}

	one := create(t, d, body{"passkeys": true})
	saysTo(puppeteer, one.CDP,
		after(signedIn, visit(site.URL), evaluate(`register("ada")`)),
		after("true", evaluate(signIn), evaluate(`blob("large")`)),
		after(signedIn, openTab(site.URL+"/?at-once"), evaluate(`window.atOnce`)),
		after(signedIn, front, evaluate(`open("/pop?at-once"), 1`), toTab("/pop"), await(`window.atOnce`), evaluate(`window.atOnce`)),
		after(signedIn, evaluate(`setTimeout(close), 1`), openTab(strings.Replace(site.URL, relyingparty.ID, "127.0.0.1", 1)+"/framed"),
			await(`window.answer`), evaluate(`window.answer`)),
		// This page would sign in again when it is restored. Two pages that sign in at the
		// same time use the same counter, and the site refuses one.
		after("true", step{"do": "closePage"}, toTab("at-once"), evaluate(`"true"`)))
	snap := save(t, d, one.ID, "filesystem")
	if c := onlyPasskeys(snap.Components); c.Origin != relyingparty.ID || c.Saved != 1 {
		t.Errorf("the capture's report: %+v", c)
	}
	privateKey := keyOf(t, d, snap.ID)
	restart(t, d)

	two := restored(one.ID, false, nil)
	if c := onlyPasskeys(two.Restored.Components); c.Origin != relyingparty.ID || c.Saved != 1 || c.Restored != 1 {
		t.Errorf("the restore's report: %+v", c)
	}
	says(two.CDP,
		after(signedIn, toTab("at-once"), await(`window.atOnce`), evaluate(`window.atOnce`)),
		after("large", openTab("about:blank"), toTab("about:blank"), visit(site.URL), evaluate(signIn), evaluate(`blob()`)))
	save(t, d, two.ID, "memory")

	three := restored(two.ID, true, nil)
	says(three.CDP, after(signedIn, toTab("at-once"), evaluate(signIn)))
	save(t, d, three.ID, "memory")

	four := restored(three.ID, false, body{"enable_memory_snapshot": false})
	if four.Restored.Datadir != state.DatadirLive {
		t.Errorf("the restored datadir is %s", four.Restored.Datadir)
	}
	says(four.CDP, after(signedIn, toTab("at-once"), await(`window.atOnce`), openTab("about:blank"), toTab("about:blank"), visit(site.URL), evaluate(signIn)))
	save(t, d, four.ID, "memory")

	// A session without passkeys keeps those of its environment.
	without := restored(four.ID, false, body{"passkeys": false, "restore_tabs": false, "engine": browser.EngineShell})
	if c := onlyPasskeys(without.Restored.Components); c.Dropped != 1 || c.Reason.Code == "" {
		t.Errorf("the report of a restore without: %+v", c)
	}
	says(without.CDP, after("false", visit(site.URL), evaluate(hasPasskey)))
	ownAuthenticator(t, site, without)
	save(t, d, without.ID, "filesystem")

	// A daemon that dies loses the passkeys in its memory. Those that the session
	// started with are kept.
	six := restored(without.ID, false, body{"engine": browser.EngineShell})
	says(six.CDP, after("true", visit(site.URL), evaluate(hasPasskey)))
	d.Kill(t)
	d.Restart(t)
	seven := restored(six.ID, false, body{"engine": browser.EngineShell})
	before := site.Count("ada")
	says(seven.CDP, after(signedIn, visit(site.URL), evaluate(signIn)))
	if now := site.Count("ada"); now != before+1 {
		t.Errorf("the counter went from %d to %d", before, now)
	}
	disabledByClient(t, site, seven)
	d.Stop(t)
	notWritten(t, d, privateKey)
}

// ownAuthenticator checks a client that uses the WebAuthn domain itself. In a session
// without passkeys it works as in any Chrome.
func ownAuthenticator(t *testing.T, site *relyingparty.Site, without created) {
	t.Helper()
	w := dial(t, without.CDP)
	page, _ := w.page()
	w.call(page, "WebAuthn.enable", obj{}, nil)
	w.call(page, "WebAuthn.addVirtualAuthenticator", obj{"options": obj{"protocol": "ctap2", "transport": "internal",
		"hasResidentKey": true, "hasUserVerification": true, "isUserVerified": true}}, nil)
	w.open(page, site.URL+"/")
	if said := w.eval(page, `register("bea")`); !strings.Contains(said, "ok: bea") {
		t.Errorf("with an authenticator of the client's own the site says %s", said)
	}
	w.close()
}

// disabledByClient checks that a session's passkeys are available again when a client that
// disabled them has disconnected.
func disabledByClient(t *testing.T, site *relyingparty.Site, with created) {
	t.Helper()
	w := dial(t, with.CDP)
	page, _ := w.page()
	w.call(page, "WebAuthn.enable", obj{}, nil)
	w.call(page, "WebAuthn.disable", nil, nil)
	w.close()
	daemon.Eventually(t, stepDeadline, "the session's passkeys are available again", func() bool {
		got := drive(t, chromeDP, with.CDP, visit(site.URL), evaluate(hasPasskey))
		return text(t, got[1]) == "true"
	})
	got := drive(t, chromeDP, with.CDP, visit(site.URL), evaluate(signIn))
	if said := text(t, got[1]); said != signedIn {
		t.Errorf("after a client's own WebAuthn the site says %s", said)
	}
}

// onlyPasskeys returns the only line of a report about passkeys.
func onlyPasskeys(lines []state.Component) state.Component {
	var found []state.Component
	for _, c := range lines {
		if c.Name == state.ComponentPasskeys {
			found = append(found, c)
		}
	}
	if len(found) != 1 {
		return state.Component{}
	}
	return found[0]
}

// keyOf returns the private key of a snapshot's only passkey, read with the secrets
// right.
func keyOf(t testing.TB, d *daemon.Daemon, snapshot string) []byte {
	t.Helper()
	var doc state.Document
	d.Must(t, http.StatusOK, http.MethodGet, "/v1/snapshots/"+snapshot+"/state?format=stasis", nil).Into(t, &doc)
	if len(doc.Passkeys.Credentials) != 1 || len(doc.Passkeys.Credentials[0].PrivateKey) == 0 {
		t.Fatalf("the state has %d passkeys", len(doc.Passkeys.Credentials))
	}
	return doc.Passkeys.Credentials[0].PrivateKey
}

// notWritten searches the log and all files of a daemon for a key.
func notWritten(t testing.TB, d *daemon.Daemon, key []byte) {
	t.Helper()
	forms := [][]byte{key, []byte(base64.StdEncoding.EncodeToString(key)), []byte(base64.RawURLEncoding.EncodeToString(key))}
	for _, form := range forms {
		if strings.Contains(d.Log(), string(form)) {
			t.Error("the log holds a private key")
		}
	}
	for _, name := range files(t, d.Dir) {
		raw, err := os.ReadFile(filepath.Join(d.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range forms {
			if bytes.Contains(raw, form) {
				t.Errorf("%s holds a private key", name)
			}
		}
	}
}
