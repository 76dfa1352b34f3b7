package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/answer"
)

func TestIdempotencyKeyOfACreate(t *testing.T) {
	r := newRig(t, nil)
	first, one := r.do(t, "POST", "/v1/sessions", `{"goal":"x","user_id":null}`, "Idempotency-Key: k")
	again, two := r.do(t, "POST", "/v1/sessions", ` {"goal" : "x"}`, "Idempotency-Key: k")
	if first.StatusCode != 201 || again.StatusCode != 201 || one != two {
		t.Errorf("got %d %s, then %d %s", first.StatusCode, one, again.StatusCode, two)
	}
	if first.Header.Get(replayedHeader) != "" || again.Header.Get(replayedHeader) != "true" {
		t.Error("the repeat is not marked, or the first one is")
	}
	if len(r.creates) != 1 {
		t.Errorf("created %d times", len(r.creates))
	}
	if answer, body := r.do(t, "POST", "/v1/sessions", `{"goal":"y"}`, "Idempotency-Key: k"); answer.StatusCode != 422 || !strings.Contains(body, "idempotency_reused") {
		t.Errorf("another body: got %d %s", answer.StatusCode, body)
	}
	if answer, _ := r.do(t, "POST", "/v1/sessions", `{}`, "Idempotency-Key: "+strings.Repeat("k", 256)); answer.StatusCode != 400 {
		t.Errorf("a long key: got %d", answer.StatusCode)
	}
	r.do(t, "POST", "/v1/sessions", `{"goal":"x"}`)
	if len(r.creates) != 2 {
		t.Error("without the header nothing is repeated")
	}
}

// The record of a new key or of a session contains no secret.
func TestIdempotencyKeepsNoSecret(t *testing.T) {
	r := newRig(t, nil)
	for _, x := range []struct{ path, body, again string }{
		{"/v1/keys", `{"name":"ci"}`, `"secret":null`},
		{"/v1/sessions", `{}`, `"cdp_url":"ws`},
		{"/v1/tickets", ``, oneTicket},
	} {
		r.do(t, "POST", x.path, x.body, "Idempotency-Key: k")
		if answer, body := r.do(t, "POST", x.path, x.body, "Idempotency-Key: k"); answer.StatusCode != 201 || !strings.Contains(body, x.again) {
			t.Errorf("%s again: got %d %s", x.path, answer.StatusCode, body)
		}
	}
	if len(r.answers.kept) != 3 {
		t.Fatalf("kept %d answers", len(r.answers.kept))
	}
	for _, a := range r.answers.kept {
		if kept := string(a.Body); strings.Contains(kept, "sk-new") || strings.Contains(kept, "ticket") {
			t.Errorf("kept %s", kept)
		}
	}
}

func TestIdempotencyOfFailures(t *testing.T) {
	for code, kept := range map[fault.Code]bool{
		fault.SessionExists: true, fault.UserMismatch: true,
		fault.TooManySessions: false, fault.BrowserFailed: false, fault.Internal: false,
	} {
		r := newRig(t, nil)
		r.err = fault.New(code, "fake", "first")
		r.do(t, "POST", "/v1/sessions", `{}`, "Idempotency-Key: k")
		r.err = nil
		answer, body := r.do(t, "POST", "/v1/sessions", `{}`, "Idempotency-Key: k")
		if got := answer.StatusCode == statusOf(code) && strings.Contains(body, "first"); got != kept {
			t.Errorf("%s: again got %d %s", code, answer.StatusCode, body)
		}
	}
}

// Simultaneous repeats create one session, and all get its answer.
func TestSimultaneousRepeats(t *testing.T) {
	r := newRig(t, nil)
	r.block = make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if answer, body := r.do(t, "POST", "/v1/sessions", `{}`, "Idempotency-Key: k"); answer.StatusCode != 201 {
				t.Errorf("got %d %s", answer.StatusCode, body)
			}
		})
	}
	close(r.block)
	all.Wait()
	if len(r.creates) != 1 {
		t.Errorf("created %d times", len(r.creates))
	}
}

// While a request holds a key, another request with it waits, up to a limit. Other keys are
// free.
func TestClaims(t *testing.T) {
	var k claims
	one, two := [2]string{"s", "1"}, [2]string{"s", "2"}
	release, err := k.take(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.take(impatient, one); !fault.Is(err, fault.RequestInProgress) {
		t.Errorf("held: got %v", err)
	}
	other, err := k.take(impatient, two)
	if err != nil {
		t.Errorf("another key: got %v", err)
	}
	other()
	waited := make(chan error, 1)
	go func() {
		release, err := k.take(t.Context(), one)
		if err == nil {
			release()
		}
		waited <- err
	}()
	release()
	if err := <-waited; err != nil || len(k.running) != 0 {
		t.Errorf("released: got %v, %d still held", err, len(k.running))
	}
}

// The record of a body does not let anyone without the key guess its passwords.
func TestHashesAreKeyed(t *testing.T) {
	keyed := func(key string) string {
		r := newRig(t, func(o *Options) { o.HashKey = []byte(key) })
		if answer, body := r.do(t, "POST", "/v1/sessions", `{}`, "Idempotency-Key: k"); answer.StatusCode != 201 {
			t.Fatalf("got %d %s", answer.StatusCode, body)
		}
		return r.answers.kept["key-1 POST /v1/sessions|k"].BodyHash
	}
	if a, b := keyed("one"), keyed("other"); a == "" || a == b || a != keyed("one") {
		t.Errorf("%s, %s", a, b)
	}
}

// A claim that a dead daemon left without an answer does not block its key.
func TestClaimOfADeadDaemonIsTakenOver(t *testing.T) {
	r := newRig(t, nil)
	body := newCreate()
	if err := body.check(); err != nil {
		t.Fatal(err)
	}
	scope := "key-1 POST /v1/sessions"
	r.answers.kept[scope+"|k"] = Answer{Scope: scope, Key: "k", BodyHash: (&idempotency{}).hashOf(body)}
	if answer, got := r.do(t, "POST", "/v1/sessions", `{}`, "Idempotency-Key: k"); answer.StatusCode != 201 || len(r.creates) != 1 {
		t.Errorf("got %d %s, %d creates", answer.StatusCode, got, len(r.creates))
	}
	if a := r.answers.kept[scope+"|k"]; a.Status != 200 {
		t.Errorf("kept %+v", a)
	}
}

// A repeat waits for a request on another node, and gets its answer. Nothing is done twice.
func TestClaimOfAnotherNode(t *testing.T) {
	r := newRig(t, nil)
	create := func() (reply, string) { return r.do(t, "POST", "/v1/keys", `{"name":"ci"}`, "Idempotency-Key: k") }
	if answer, body := create(); answer.StatusCode != 201 {
		t.Fatal(answer.StatusCode, body)
	}
	const at = "key-1 POST /v1/keys|k"
	r.answers.mu.Lock()
	first := r.answers.kept[at]
	runs := first
	runs.Status, runs.Body, runs.Elsewhere = 0, nil, true
	r.answers.kept[at], r.answers.claimed = runs, make(chan bool)
	r.answers.mu.Unlock()
	go func() {
		for range 2 { // it asks again
			<-r.answers.claimed
		}
		r.answers.mu.Lock()
		defer r.answers.mu.Unlock()
		r.answers.kept[at] = first
	}()
	if answer, body := create(); answer.StatusCode != 201 || answer.Header.Get(replayedHeader) != "true" {
		t.Errorf("got %d %s, marked %q", answer.StatusCode, body, answer.Header.Get(replayedHeader))
	}
}

// A repeat is refused while the request on another node runs. Creates choose an ID, and an old
// claim is one whose answer could not be stored.
func TestClaimRefusesWhileAnotherNodeRuns(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ended, end := context.WithCancel(t.Context())
	end()
	claim := Answer{Scope: "s", Key: "k", BodyHash: "hash", CreatedAt: now}
	for name, c := range map[string]struct {
		known   Answer
		refused bool
	}{
		"runs":         {Answer{BodyHash: "hash", CreatedAt: now, Elsewhere: true}, true},
		"another body": {Answer{BodyHash: "other", CreatedAt: now, Elsewhere: true}, false},
		"chosen":       {Answer{BodyHash: "hash", CreatedAt: now, Elsewhere: true, Body: []byte(`"id"`)}, false},
		"old":          {Answer{BodyHash: "hash", CreatedAt: now.Add(-otherAge), Elsewhere: true}, false},
		"own":          {Answer{BodyHash: "hash", CreatedAt: now}, false},
		"answered":     {Answer{BodyHash: "hash", CreatedAt: now, Status: 200, Body: []byte(`{}`)}, false},
	} {
		i := &idempotency{answers: &fakeAnswers{kept: map[string]Answer{"s|k": c.known}}, now: func() time.Time { return now }}
		_, fresh, err := i.claim(ended, claim)
		if fresh || fault.Is(err, fault.RequestInProgress) != c.refused || !c.refused && err != nil {
			t.Errorf("%s: %v, %v", name, fresh, err)
		}
	}
}

func TestAnswersForExistingSessions(t *testing.T) {
	r := newRig(t, nil)
	r.existed = true
	for body, want := range map[string]int{
		fmt.Sprintf(`{"session_id":%q}`, liveID): 201, // the first answer again
		`{"on_live":"share"}`:                    200,
	} {
		if answer, got := r.do(t, "POST", "/v1/sessions", body); answer.StatusCode != want {
			t.Errorf("%s: got %d %s", body, answer.StatusCode, got)
		}
	}
	for range 2 { // the repeat of a shared session is answered like the first request
		if answer, got := r.do(t, "POST", "/v1/sessions", `{"on_live":"share"}`, "Idempotency-Key: k"); answer.StatusCode != 200 {
			t.Errorf("got %d %s", answer.StatusCode, got)
		}
	}
	var hashes []string
	for _, c := range r.creates {
		hashes = append(hashes, c.RequestHash)
	}
	if hashes[0] == hashes[1] || hashes[0] == "" {
		t.Errorf("hashes %v", hashes)
	}
	var a answer.Session
	_, got := r.do(t, "GET", "/v1/sessions/ended-1", "")
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatal(err)
	}
	if a.CDPURL != nil || a.VNCURL != nil || a.Outcome == nil || a.Outcome.Default.Version != 2 || a.CreatedAt.Location().String() != "UTC" {
		t.Errorf("ended: got %s", got)
	}
}
