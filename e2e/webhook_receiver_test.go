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
)

// hooked is one webhook as it came.
type hooked struct {
	ID, Event string
	Session   struct {
		ID     string `json:"session_id"`
		UserID string `json:"user_id"`
		Status string
		CDP    string `json:"cdp_url"`
	}
	status int // that it was answered; 0: it was not
}

// receiver takes webhooks, and checks the signature of each as Standard Webhooks
// has it, with code of its own.
type receiver struct {
	URL string

	mu     sync.Mutex
	secret []byte
	got    []hooked
	answer func(hooked) int // 0 hangs until the sender goes; nil: 204
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.take(t, w, q) }))
	t.Cleanup(s.Close)
	r.URL = s.URL + "/hook"
	return r
}

// trust reads what the daemon of a data directory signs with.
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
	_, _ = mac.Write([]byte(q.Header.Get("webhook-id") + "." + q.Header.Get("webhook-timestamp") + "." + string(body))) // a hash takes all
	hook := hooked{ID: q.Header.Get("webhook-id")}
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

// answers says what the receiver does from now on; it is called while the receiver
// holds its lock.
func (r *receiver) answers(answer func(hooked) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// of are the webhooks of an event of a session ("" for any) with what they were
// answered, in the order in which they came.
func (r *receiver) of(event, session string) (all []hooked) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.got {
		if h.Event == event && (session == "" || h.Session.ID == session) {
			all = append(all, h)
		}
	}
	return all
}

// waits until so many of an event of a session have come.
func (r *receiver) waits(t *testing.T, event, session string, n int) []hooked {
	t.Helper()
	daemon.Eventually(t, grace, event, func() bool { return len(r.of(event, session)) >= n })
	return r.of(event, session)
}
