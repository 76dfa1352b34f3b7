package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/profiles"
)

// receivedWebhook is one received webhook.
type receivedWebhook struct {
	ID, Event string
	Session   struct {
		ID     string `json:"session_id"`
		UserID string `json:"user_id"`
		Status string
		Why    profiles.ReasonCode `json:"reason_code"`
		CDP    string              `json:"cdp_url"`
	}
	status int // the status of the answer; 0 for no answer
}

// receiver receives webhooks and checks their signatures, with its own implementation of
// Standard Webhooks.
type receiver struct {
	URL string

	mu     sync.Mutex
	secret []byte
	got    []receivedWebhook
	answer func(receivedWebhook) int // 0 hangs until the sender disconnects; nil answers 204
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.take(t, w, q) }))
	t.Cleanup(s.Close)
	r.URL = s.URL + "/hook"
	return r
}

// trust reads the signing key of a daemon from its data directory.
func (r *receiver) trust(t *testing.T, dataDir string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dataDir, "webhook-secret"))
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.secret, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(strings.TrimSpace(string(raw)), "whsec_")); err != nil {
		t.Fatal(err)
	}
}

func (r *receiver) take(t *testing.T, w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return // the daemon was killed
	}
	r.mu.Lock()
	mac := hmac.New(sha256.New, r.secret)
	_, _ = mac.Write([]byte(q.Header.Get("webhook-id") + "." + q.Header.Get("webhook-timestamp") + "." + string(body))) // writing to a hash never fails
	hook := receivedWebhook{ID: q.Header.Get("webhook-id")}
	if got, want := q.Header.Get("webhook-signature"), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)); got != want {
		t.Errorf("signed %q, want %q", got, want)
	}
	if err := json.Unmarshal(body, &hook); err != nil || hook.ID == "" || hook.Session.CDP != "" {
		t.Errorf("%s: %v", body, err)
	}
	hook.status = http.StatusNoContent
	if r.answer != nil {
		hook.status = r.answer(hook)
	}
	r.got = append(r.got, hook)
	r.mu.Unlock()
	if hook.status == 0 {
		<-q.Context().Done()
		return
	}
	w.WriteHeader(hook.status)
}

// answers sets how the receiver answers from now on. answer is called under the
// receiver's lock.
func (r *receiver) answers(answer func(receivedWebhook) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// of returns the webhooks of an event of a session ("" for any), with their answers, in
// the order of arrival.
func (r *receiver) of(event, session string) (all []receivedWebhook) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.got {
		if h.Event == event && (session == "" || h.Session.ID == session) {
			all = append(all, h)
		}
	}
	return all
}

// waits waits until a number of webhooks of an event of a session have been received.
func (r *receiver) waits(t *testing.T, event, session string, n int) []receivedWebhook {
	t.Helper()
	daemon.Eventually(t, grace, event, func() bool { return len(r.of(event, session)) >= n })
	return r.of(event, session)
}
