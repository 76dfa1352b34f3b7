package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// signedHook is a received webhook that was not checked yet.
type signedHook struct{ id, timestamp, body, signatures string }

// signedBy reports whether one of its signatures is that of a secret.
func (h signedHook) signedBy(secret string) bool {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(secret), "whsec_"))
	if err != nil || len(key) == 0 {
		return false
	}
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(h.id + "." + h.timestamp + "." + h.body)) // writing to a hash never fails
	return slices.Contains(strings.Split(h.signatures, " "), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}

// hooks receives webhooks and keeps them as they came.
type hooks struct {
	URL string
	mu  sync.Mutex
	got []signedHook
}

func newHooks(t *testing.T) *hooks {
	h := &hooks{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.got = append(h.got, signedHook{q.Header.Get("webhook-id"), q.Header.Get("webhook-timestamp"), string(body), q.Header.Get("webhook-signature")})
	}))
	t.Cleanup(s.Close)
	h.URL = s.URL + "/hook"
	return h
}

// last waits for the end of a session and returns its webhook.
func (h *hooks) last(t *testing.T, session string) (found signedHook) {
	t.Helper()
	daemon.Eventually(t, grace, "the webhook of the session's end", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		i := slices.IndexFunc(h.got, func(s signedHook) bool {
			return strings.Contains(s.body, "session.deleted") && strings.Contains(s.body, session)
		})
		if i >= 0 {
			found = h.got[i]
		}
		return i >= 0
	})
	return found
}

// TestWebhookSecrets has receivers with their own secrets: each verifies with its own and
// refuses the others. Secrets are rotated with an overlap, survive a rotation of the identity,
// and are shown and kept nowhere in clear.
func TestWebhookSecrets(t *testing.T) {
	t.Parallel()
	operator := newHooks(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell", "--webhook-allow-private", "--webhook-url", operator.URL}})
	raw, err := os.ReadFile(filepath.Join(d.Dir, "webhook-secret"))
	if err != nil {
		t.Fatal(err)
	}
	common := string(raw)
	alice, bob := newKey(t, d, "alice"), newKey(t, d, "bob")
	var all []string
	set := func(key string, body obj) string {
		t.Helper()
		a := d.CallAs(t, key, http.MethodPut, "/v1/webhooks/secrets", body)
		if a.Status != http.StatusOK {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		var made struct{ Secret *string }
		a.Into(t, &made)
		if given, is := body["secret"].(string); is {
			if made.Secret != nil {
				t.Errorf("a given secret is shown: %s", a.Body)
			}
			all = append(all, given)
			return given
		}
		all = append(all, *made.Secret)
		return *made.Secret
	}
	hook := func(key, url string) liveSession {
		s := beginAs(t, d, key, obj{"webhook_url": url})
		finish(t, d, s.ID, throwAway)
		return s
	}
	signed := func(what string, h signedHook, by []string, notBy ...string) {
		t.Helper()
		for _, secret := range by {
			if !h.signedBy(secret) {
				t.Errorf("%s is not signed by its secret: %q", what, h.signatures)
			}
		}
		for _, secret := range notBy {
			if h.signedBy(secret) {
				t.Errorf("%s is signed by another's secret: %q", what, h.signatures)
			}
		}
	}

	one, two, plain := newHooks(t), newHooks(t), newHooks(t)
	signed("a receiver without a secret", plain.last(t, hook(alice, plain.URL).ID), []string{common})
	first := set(alice, obj{"url": one.URL})
	others := set(alice, obj{"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
	ofBob := set(bob, obj{"url": two.URL})
	onOne, onTwo, rest := hook(alice, one.URL), hook(bob, two.URL), hook(alice, plain.URL)
	signed("alice's receiver", one.last(t, onOne.ID), []string{first}, others, ofBob, common)
	signed("bob's receiver", two.last(t, onTwo.ID), []string{ofBob}, first, others, common)
	signed("alice's other receiver", plain.last(t, rest.ID), []string{others}, first, ofBob, common)
	signed("the operator's", operator.last(t, onOne.ID), []string{common}, first, others, ofBob)
	// A user who names the operator's receiver does not change what it trusts.
	set(alice, obj{"url": operator.URL})
	signed("the operator's", operator.last(t, hook(alice, operator.URL).ID), []string{common})

	second := set(alice, obj{"url": one.URL, "overlap_seconds": 3600})
	signed("in the overlap", one.last(t, hook(alice, one.URL).ID), []string{first, second}, others)
	var list struct {
		Secrets []struct {
			UserID string `json:"user_id"`
			URL    *string
			Until  *string `json:"former_secret_until"`
		}
	}
	answer := d.CallAs(t, alice, http.MethodGet, "/v1/webhooks/secrets", nil)
	answer.Into(t, &list)
	if len(list.Secrets) != 3 || list.Secrets[0].URL != nil {
		t.Errorf("the list: %s", answer.Body)
	}
	for _, s := range list.Secrets {
		if s.UserID != "alice" || s.URL != nil && (*s.URL == one.URL) != (s.Until != nil) {
			t.Errorf("the list: %s", answer.Body)
		}
	}
	wants(t, d.CallAs(t, bob, http.MethodPut, "/v1/webhooks/secrets", obj{"user_id": "alice", "url": one.URL}), http.StatusNotFound, "user_not_found")
	wants(t, d.CallAs(t, bob, http.MethodGet, "/v1/webhooks/secrets?user_id=alice", nil), http.StatusNotFound, "user_not_found")
	wants(t, d.CallAs(t, bob, http.MethodDelete, "/v1/webhooks/secrets?user_id=alice", nil), http.StatusNotFound, "user_not_found")
	wants(t, d.CallAs(t, alice, http.MethodPut, "/v1/webhooks/secrets", obj{"secret": "whsec_short"}), http.StatusUnprocessableEntity, "invalid_field")

	// They follow a rotation of the identity.
	d.Stop(t)
	if out, err := exec.Command(daemon.Binary(t), "identity", "rotate", "--data-dir", d.Dir).CombinedOutput(); err != nil || !strings.Contains(string(out), "and 4 webhook secrets were resealed") {
		t.Fatalf("%v: %s", err, out)
	}
	d.Restart(t)
	signed("after the rotation", one.last(t, hook(alice, one.URL).ID), []string{first, second}, others)

	third := set(alice, obj{"url": one.URL})
	signed("without an overlap", one.last(t, hook(alice, one.URL).ID), []string{third}, first, second)
	if a := d.CallAs(t, alice, http.MethodDelete, "/v1/webhooks/secrets?url="+one.URL, nil); a.Status != http.StatusNoContent {
		t.Errorf("delete = %d %s", a.Status, a.Body)
	}
	signed("without its own", one.last(t, hook(alice, one.URL).ID), []string{others}, third, common)

	d.Stop(t)
	for _, secret := range all {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(d.Log(), secret) {
			t.Error("a secret is in the log")
		}
		err = filepath.WalkDir(d.Dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if strings.Contains(string(data), secret) || strings.Contains(string(data), string(key)) {
				t.Errorf("a secret is in %s", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
