package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stasisd/stasis/e2e/daemon"
)

// creating is a create that has not been answered yet.
type creating <-chan daemon.Answer

// createLater sends a create that will wait, and returns once the daemon has received
// it. From then on a second create of the same session is refused, because one is in
// progress. If the second is received first, the first is sent again.
func createLater(t testing.TB, d *daemon.Daemon, b body) creating {
	t.Helper()
	got := make(chan daemon.Answer, 1)
	go func() {
		for {
			if a := d.Call(t, http.MethodPost, "/v1/sessions", b); a.Code() != inProgress {
				got <- a
				return
			}
		}
	}()
	waits(t, d, b["session_id"])
	return got
}

// inProgress is the error code of a create while another of the same session ID is in
// progress.
const inProgress = "request_in_progress"

// waits returns once a create of the session is in progress.
func waits(t testing.TB, d *daemon.Daemon, id any) {
	t.Helper()
	daemon.Eventually(t, stepDeadline, fmt.Sprint("the create of ", id, " waits"), func() bool {
		ask := body{"session_id": id, "restore_from_session_id": "nobody"} // fails harmlessly if it is received first
		return d.Call(t, http.MethodPost, "/v1/sessions", ask).Code() == inProgress
	})
}

// If all slots are taken, a create is refused with a Retry-After. Or it waits for its
// turn, unless its client disconnects.
func TestQueue(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--max-sessions", "1", "--engine", "shell"}})
	s := create(t, d, body{})
	a := d.Call(t, http.MethodPost, "/v1/sessions", body{})
	if a.Status != http.StatusTooManyRequests || a.Code() != "too_many_sessions" || a.Header.Get("Retry-After") == "" {
		t.Errorf("without waiting: %d %s, Retry-After %q", a.Status, a.Body, a.Header.Get("Retry-After"))
	}
	a = d.Call(t, http.MethodPost, "/v1/sessions", body{"wait_seconds": 1})
	if a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("waiting too long: %d %s", a.Status, a.Body)
	}

	// One client disconnects. The others are served in the order of their requests.
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- createUntil(ctx, d) }()
	waits(t, d, "gone")
	// A create is in progress before it has its place in the queue.
	queued := func(n int) {
		t.Helper()
		daemon.Eventually(t, stepDeadline, fmt.Sprint(n, " creates are in the queue"), func() bool { return waiting(t, d) == n })
	}
	queued(1)
	names := []string{"first", "second", "third"}
	var creates []creating
	for i, name := range names {
		creates = append(creates, createLater(t, d, body{"session_id": name, "wait_seconds": 600}))
		queued(i + 2)
	}
	hangUp()
	if err := <-gone; err == nil {
		t.Error("the disconnected client was answered")
	}
	queued(len(names))
	order := []string{}
	for range names {
		for i, w := range creates {
			select {
			case a := <-w:
				if a.Status != http.StatusCreated {
					t.Fatalf("%s: %d %s", names[i], a.Status, a.Body)
				}
				t.Fatalf("%s was answered before the slot was free", names[i])
			default:
			}
		}
		end(t, d, s.ID, "")
		s, creates, names = next(t, d, creates, names)
		order = append(order, s.ID)
	}
	if diff := cmp.Diff([]string{"first", "second", "third"}, order); diff != "" {
		t.Errorf("the order (-asked +served):\n%s", diff)
	}
}

// createUntil requests the session "gone" until it is answered or ctx ends.
func createUntil(ctx context.Context, d *daemon.Daemon) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL+"/v1/sessions", strings.NewReader(`{"session_id":"gone","wait_seconds":600}`))
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+daemon.Key)
		req.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = answer.Body.Close() // only the status matters
		if answer.StatusCode != http.StatusConflict {
			return nil
		}
	}
}

// next waits until one of the creates is answered and removes it from the list.
func next(t testing.TB, d *daemon.Daemon, waiting []creating, names []string) (created, []creating, []string) {
	t.Helper()
	var s created
	at := -1
	daemon.Eventually(t, stepDeadline, "a create gets the slot", func() bool {
		for i, w := range waiting {
			select {
			case a := <-w:
				if a.Status != http.StatusCreated {
					t.Fatalf("%s: %d %s", names[i], a.Status, a.Body)
				}
				a.Into(t, &s)
				at = i
				return true
			default:
			}
		}
		return false
	})
	return s, append(append([]creating{}, waiting[:at]...), waiting[at+1:]...), append(append([]string{}, names[:at]...), names[at+1:]...)
}
