package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/api/apitest"
	"github.com/stasisd/stasis/api/metrics"
)

// fakeAnswers stores answers in memory.
type fakeAnswers struct {
	mu      sync.Mutex
	kept    map[string]Answer
	claimed chan bool // gets a value with each claim, if it has room
}

func (a *fakeAnswers) ClaimAnswer(_ context.Context, x Answer) (Answer, bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case a.claimed <- true:
	default:
	}
	if known, ok := a.kept[x.Scope+"|"+x.Key]; ok {
		return known, false, nil
	}
	a.kept[x.Scope+"|"+x.Key] = x
	return x, true, nil
}

func (a *fakeAnswers) FinishAnswer(_ context.Context, x Answer) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept[x.Scope+"|"+x.Key] = x
	return nil
}

func (a *fakeAnswers) DropAnswer(_ context.Context, scope, key string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.kept, scope+"|"+key)
	return nil
}

// rig is a server with fakes, and a client that checks every exchange against openapi.yaml.
type rig struct {
	*failing
	*fakeSessions
	*fakeKeys
	*fakeAgents
	*fakeHistory
	*fakeUsers
	*fakeLibrary
	*fakeUploads
	answers *fakeAnswers
	audit   *fakeAudit
	server  *Server
	url     string
	client  *http.Client
	log     *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newRig(t *testing.T, change func(*Options)) *rig {
	t.Helper()
	failing := &failing{}
	r := &rig{
		failing: failing, fakeSessions: &fakeSessions{failing: failing}, fakeKeys: &fakeKeys{failing: failing}, fakeAgents: &fakeAgents{failing: failing},
		fakeHistory: &fakeHistory{failing: failing, entries: entries()}, fakeUsers: &fakeUsers{failing: failing}, fakeLibrary: &fakeLibrary{failing: failing},
		fakeUploads: &fakeUploads{failing: failing, uploads: map[string][]byte{}, dir: t.TempDir()},
		answers:     &fakeAnswers{kept: map[string]Answer{}},
		audit:       &fakeAudit{},
		log:         &lockedBuffer{},
	}
	o := Options{
		Sessions: r.fakeSessions, Inspector: r.fakeSessions, Checkpoints: r.fakeSessions, Controls: r.fakeSessions, Driver: r.fakeSessions, CDP: r.fakeSessions,
		SessionTickets: r.fakeSessions, Readiness: r.fakeSessions,
		Sharing: r.fakeSessions,
		Files:   r.fakeUploads, Extensions: r.fakeUploads, Importer: r.fakeUploads, Documents: r.fakeUploads,
		Messenger: r.fakeAgents, Notes: r.fakeAgents, History: r.fakeHistory, Deliveries: r.fakeHistory, WebhookSecrets: r.fakeHistory,
		Snapshots: r.fakeLibrary, Exports: r.fakeLibrary, Pruner: r.fakeLibrary,
		Defaults: r.fakeUsers, Logins: r.fakeUsers, Settings: r.fakeUsers, Rates: r.fakeUsers, Streams: r.fakeSessions,
		Keys: r.fakeKeys, Answers: r.answers, Audit: r.audit,
		Metrics: metrics.New("test").Handler(), Logger: slog.New(slog.NewTextHandler(r.log, nil)), Now: time.Now, MaxUpload: 1 << 10,
	}
	if change != nil {
		change(&o)
	}
	r.server = New(o)
	hs := httptest.NewServer(r.server)
	t.Cleanup(hs.Close)
	validator, err := apitest.New(hs.Client().Transport, func(err error) { t.Errorf("wire: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	r.url, r.client = hs.URL, &http.Client{Transport: validator}
	return r
}

// reply is an answer whose body was read and closed.
type reply struct {
	StatusCode int
	Header     http.Header
}

// do sends a request with the valid key; headers are "Name: value". It returns the answer
// and its body.
func (r *rig) do(t *testing.T, method, path, body string, headers ...string) (reply, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Del(name)
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	answer, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header}, string(data)
}
