package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/stasisd/stasis/egress"
	"github.com/stasisd/stasis/profiles"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The test vector of the Standard Webhooks reference libraries.
func TestSignature(t *testing.T) {
	secret, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if again, err := ParseSecret(NewSecret().Text() + "\n"); err != nil || len(again) != 32 {
		t.Errorf("a new secret: %v", err)
	}
	for _, bad := range []string{"", "whsec_", "whsec_AAAA", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!"} {
		if _, err := ParseSecret(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// queue is a Queue in memory.
type queue struct {
	mu     sync.Mutex
	all    []profiles.Delivery
	broken bool
	// meanwhile is called while an attempt is being recorded; nil: nothing is called.
	meanwhile func()
}

func (q *queue) DueDeliveries(ctx context.Context, now, beyond time.Time, limit int) ([]profiles.Delivery, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	seen := map[lane]bool{}
	var due []profiles.Delivery
	for _, d := range q.all {
		at := lane{d.SessionID, d.URL}
		if d.State == profiles.DeliveryPending && (!d.NextAt.After(now) || d.NextAt.After(beyond)) && !seen[at] && len(due) < limit {
			seen[at] = true
			due = append(due, d)
		}
	}
	return due, nil
}

func (q *queue) NextDelivery(_ context.Context, now time.Time) (next time.Time, _ error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range q.all {
		if d.State == profiles.DeliveryPending && d.NextAt.After(now) && (next.IsZero() || d.NextAt.Before(next)) {
			next = d.NextAt
		}
	}
	return next, nil
}

func (q *queue) FinishAttempt(ctx context.Context, of profiles.Delivery, a profiles.Attempt) error {
	if q.meanwhile != nil {
		q.meanwhile()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.broken {
		return errors.New("broken on purpose")
	}
	for i := range q.all {
		if d := &q.all[i]; d.ID == of.ID && d.Attempts == of.Attempts && d.Since.Equal(of.Since) {
			d.State, d.NextAt, d.LastAt, d.LastError, d.Attempts = a.State, a.NextAt, a.At, a.Error, of.Attempts+1
		}
	}
	return nil
}

func (q *queue) add(id, session string, as ...func(*profiles.Delivery)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.all = append(q.all, profiles.Delivery{Notice: profiles.Notice{ID: id, URL: "https://hooks.example/" + session, Event: "e", Body: []byte(`{}`), At: now},
		SessionID: session, State: profiles.DeliveryPending, Since: now, NextAt: now})
	for _, change := range as {
		change(&q.all[len(q.all)-1])
	}
}

func (q *queue) get(id string) profiles.Delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all[slices.IndexFunc(q.all, func(d profiles.Delivery) bool { return d.ID == id })]
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body string, headers ...string) *http.Response {
	a := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i < len(headers); i += 2 {
		a.Header.Set(headers[i], headers[i+1])
	}
	return a
}

// runSender runs a sender on a queue, with the fake time of synctest.
func runSender(t *testing.T, receiver transport, do func(t *testing.T, q *queue, s *Sender)) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{}
		s := New(Options{Queue: q, Secrets: always(make(Secret, 32)), Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Jitter: func() float64 { return 0.5 }, Transport: receiver})
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.Run(ctx) })
		do(t, q, s)
		stop()
		running.Wait()
	})
}

func advance(d time.Duration) {
	time.Sleep(d) // in fake time
	synctest.Wait()
}

// A receiver that answers 500 for an hour gets the delivery then, under the same ID.
func TestDeliveredAfterAnHourOfFailures(t *testing.T) {
	var seen []string
	var up time.Time
	runSender(t, func(r *http.Request) (*http.Response, error) {
		seen = append(seen, r.Header.Get("webhook-id"))
		if time.Now().Before(up) {
			return answer(500, "try later\x00"), nil
		}
		return answer(204, ""), nil
	}, func(t *testing.T, q *queue, s *Sender) {
		up = time.Now().Add(time.Hour)
		q.add("1", "s")
		s.Wake()
		advance(time.Second)
		if d := q.get("1"); d.State != profiles.DeliveryPending || d.Attempts != 1 || !strings.Contains(d.LastError, "500") || !strings.Contains(d.LastError, "try later") {
			t.Errorf("after the first attempt: %+v", d)
		}
		advance(3 * time.Hour)
		d := q.get("1")
		if d.State != profiles.DeliveryDelivered || d.LastError != "" || d.Attempts < 9 || d.Attempts > 13 {
			t.Errorf("in the end: %+v", d)
		}
	})
	if ids := slices.Compact(slices.Clone(seen)); !slices.Equal(ids, []string{"1"}) {
		t.Errorf("the delivery's IDs: %q", seen)
	}
}

func TestGivesUp(t *testing.T) {
	runSender(t, func(*http.Request) (*http.Response, error) { return answer(404, strings.Repeat("x", 1<<20)), nil },
		func(t *testing.T, q *queue, s *Sender) {
			q.add("1", "s")
			s.Wake()
			advance(GiveUpAfter - 2*longestPause)
			if d := q.get("1"); d.State != profiles.DeliveryPending {
				t.Errorf("abandoned too early: %+v", d)
			}
			advance(2 * longestPause)
			d := q.get("1")
			if d.State != profiles.DeliveryFailed || !strings.HasPrefix(d.LastError, "abandoned after 24h0m0s: the receiver answered 404: xxx") || len(d.LastError) > 300 {
				t.Errorf("in the end: %+v", d)
			}
		})
}

// A receiver that hangs costs ten seconds and delays no other delivery.
func TestHangs(t *testing.T) {
	runSender(t, func(r *http.Request) (*http.Response, error) {
		if strings.HasSuffix(r.URL.Path, "/hangs") {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		return answer(200, ""), nil
	}, func(t *testing.T, q *queue, s *Sender) {
		q.add("1", "hangs")
		q.add("2", "s")
		s.Wake()
		advance(time.Second)
		if q.get("2").State != profiles.DeliveryDelivered {
			t.Error("the delivery of another session waits")
		}
		advance(attemptTimeout)
		if d := q.get("1"); d.Attempts != 1 || !strings.Contains(d.LastError, "10s") {
			t.Errorf("got %+v", d)
		}
	})
}

// A session's deliveries are sent in order, one at a time. A delivery that waits for its
// next attempt does not delay the following ones.
func TestOrder(t *testing.T) {
	var got []string
	fail := true
	runSender(t, func(r *http.Request) (*http.Response, error) {
		time.Sleep(time.Second)
		id := r.Header.Get("webhook-id")
		if id == "2" && fail {
			fail = false
			return answer(503, ""), nil
		}
		got = append(got, id)
		return answer(200, ""), nil
	}, func(t *testing.T, q *queue, s *Sender) {
		for _, id := range []string{"1", "2", "3", "4"} {
			q.add(id, "s")
		}
		s.Wake()
		advance(time.Minute)
	})
	if !slices.Equal(got, []string{"1", "3", "4", "2"}) {
		t.Errorf("got %q", got)
	}
}

// What another node has queued that has died since is sent although nothing wakes the sender.
func TestDeliveryOfAnotherNode(t *testing.T) {
	var got []string
	runSender(t, func(r *http.Request) (*http.Response, error) {
		got = append(got, r.Header.Get("webhook-id"))
		return answer(200, ""), nil
	}, func(_ *testing.T, q *queue, _ *Sender) {
		advance(time.Second) // the sender sleeps
		q.add("1", "s")
		advance(2 * time.Minute)
	})
	if !slices.Equal(got, []string{"1"}) {
		t.Errorf("got %q", got)
	}
}

// A delivery whose result cannot be recorded is not sent in a loop.
func TestUnrecordedAttemptIsNotRepeated(t *testing.T) {
	n := 0
	runSender(t, func(*http.Request) (*http.Response, error) { n++; return answer(200, ""), nil },
		func(t *testing.T, q *queue, s *Sender) {
			q.broken = true
			q.add("1", "s")
			s.Wake()
			advance(time.Hour)
			q.mu.Lock()
			q.broken = false
			q.mu.Unlock()
			advance(time.Minute)
			if d := q.get("1"); n != 1 || d.State != profiles.DeliveryDelivered {
				t.Errorf("sent %d times: %+v", n, d)
			}
		})
}

// A delivery that arrived is recorded although the daemon stops meanwhile.
func TestDeliveryIsRecordedDuringStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		q := &queue{meanwhile: stop}
		s := New(Options{Queue: q, Secrets: always(make(Secret, 32)), Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Transport: transport(func(*http.Request) (*http.Response, error) { return answer(200, ""), nil })})
		q.add("1", "s")
		q.add("2", "t")
		s.Run(ctx)
		for _, id := range []string{"1", "2"} {
			if d := q.get(id); d.State != profiles.DeliveryDelivered {
				t.Errorf("%+v", d)
			}
		}
	})
}

// A resent delivery starts with short pauses again, however many attempts it had.
func TestResent(t *testing.T) {
	runSender(t, func(*http.Request) (*http.Response, error) { return answer(500, ""), nil },
		func(t *testing.T, q *queue, s *Sender) {
			q.add("1", "s", func(d *profiles.Delivery) { d.Attempts, d.Resent = 30, 30 })
			s.Wake()
			advance(time.Second)
			if d := q.get("1"); d.Attempts != 31 || d.NextAt.Sub(d.LastAt) != firstPause {
				t.Errorf("%+v: again after %v", d, d.NextAt.Sub(d.LastAt))
			}
		})
}

// A delivery that is due far in the future because the clock was set back is sent now; a
// delivery that was postponed is not.
func TestClockSetBack(t *testing.T) {
	runSender(t, func(*http.Request) (*http.Response, error) { return answer(200, ""), nil },
		func(t *testing.T, q *queue, s *Sender) {
			in := func(wait time.Duration) func(*profiles.Delivery) {
				return func(d *profiles.Delivery) { d.NextAt = d.At.Add(wait) }
			}
			q.add("1", "s", in(48*time.Hour))
			q.add("2", "t", in(longestPause))
			s.Wake()
			advance(time.Second)
			if a, b := q.get("1"), q.get("2"); a.State != profiles.DeliveryDelivered || b.State != profiles.DeliveryPending {
				t.Errorf("%+v, %+v", a, b)
			}
		})
}

// What is sent over the network, and which addresses are refused.
func TestNetwork(t *testing.T) {
	var got *http.Request
	var body []byte
	redirected := false
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) { got = r; body, _ = io.ReadAll(r.Body) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/private", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/private", func(http.ResponseWriter, *http.Request) { redirected = true })
	server := httptest.NewServer(mux)
	defer server.Close()
	secret := NewSecret()
	make := func(allow bool) *Sender {
		return New(Options{Secrets: always(secret), Egress: egress.Policy{Private: allow}, Now: func() time.Time { return time.Unix(1000, 0) }, Log: slog.New(slog.DiscardHandler)})
	}
	d := profiles.Delivery{Notice: profiles.Notice{ID: "1", URL: server.URL + "/hook", Body: []byte(`{"a": 1}`)}}
	if err := make(true).send(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(body) || string(body) != `{"a": 1}` || got.Header.Get("webhook-id") != "1" || got.Header.Get("webhook-timestamp") != "1000" ||
		got.Header.Get("webhook-signature") != secret.sign("1", time.Unix(1000, 0), body) || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s with %v", body, got.Header)
	}
	got = nil
	for _, url := range []string{server.URL, strings.Replace(server.URL, "127.0.0.1", "localhost", 1), "http://169.254.169.254/", "http://[::1]:9/"} {
		d.URL = url
		if err := make(false).send(t.Context(), d); !errors.Is(err, errNotPublic) && !errors.Is(err, egress.ErrNever) {
			t.Errorf("%s: got %v", url, err)
		}
	}
	d.URL = server.URL + "/away"
	if err := make(true).send(t.Context(), d); err == nil || !strings.HasPrefix(err.Error(), "the receiver answered 307") || redirected || got != nil {
		t.Errorf("a redirect: %v", err)
	}
	server.Close()
	d.URL = server.URL
	if err := make(true).send(t.Context(), d); err == nil || strings.Contains(err.Error(), "127.0.0.1") {
		t.Errorf("no receiver: %v", err)
	}
}

// always is one secret for all deliveries.
type always Secret

func (a always) For(context.Context, profiles.Delivery) ([]Secret, error) {
	return []Secret{Secret(a)}, nil
}
