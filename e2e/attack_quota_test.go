package e2e

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/daemon"
)

// TestAttackQuotas makes more sessions at once than a user may have, and sets quotas.
func TestAttackQuotas(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, attacked(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell", "--default-quota", "sessions=2"}}))
	use := func(user string) (u struct {
		Use struct {
			Sessions struct{ Used, Limit int }
		}
	}) {
		t.Helper()
		d.Must(t, http.StatusOK, http.MethodGet, "/v1/users/"+user, nil).Into(t, &u)
		return u
	}
	alice := newKey(t, d, "alice")
	var made, refused atomic.Int32
	var calls sync.WaitGroup
	for range 50 {
		calls.Go(func() {
			switch a := d.CallAs(t, alice, http.MethodPost, "/v1/sessions", obj{}); {
			case a.Status == http.StatusCreated:
				made.Add(1)
			case a.Status == http.StatusTooManyRequests && a.Code() == "quota_exceeded" && strings.Contains(string(a.Body), "quotas.sessions"):
				refused.Add(1)
			default:
				t.Errorf("answer %d %s", a.Status, a.Body)
			}
		})
	}
	calls.Wait()
	if made.Load() != 2 || refused.Load() != 48 {
		t.Fatalf("of 50 creates %d made a session, and %d were refused", made.Load(), refused.Load())
	}
	if u := use("alice"); u.Use.Sessions.Used != 2 || u.Use.Sessions.Limit != 2 {
		t.Errorf("the use is %+v", u)
	}
	wants(t, d.CallAs(t, alice, http.MethodPatch, "/v1/users/alice", obj{"quotas": obj{"sessions": 9}}), http.StatusForbidden, "forbidden")
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/alice", obj{"quotas": obj{"sessions": 3}})
	third := begin(t, d, obj{"user_id": "alice"})
	other := begin(t, d, obj{"user_id": "bob"})

	// A create that waits gets the place of the user's own session, not another user's.
	waited := make(chan liveSession, 1)
	go func() { waited <- begin(t, d, obj{"user_id": "alice", "wait_seconds": 600}) }()
	finish(t, d, other.ID, throwAway)
	begin(t, d, obj{"user_id": "bob"})
	select {
	case s := <-waited:
		t.Errorf("the session %s was made beyond the quota", s.ID)
	default:
	}
	finish(t, d, third.ID, throwAway)
	select {
	case <-waited:
	case <-time.After(grace):
		t.Fatal("the create that waits got no place")
	}
	if u := use("alice"); u.Use.Sessions.Used != 3 || u.Use.Sessions.Limit != 3 {
		t.Errorf("the use is %+v", u)
	}
	// A smaller quota ends no session.
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/alice", obj{"quotas": obj{"sessions": 1}})
	if u := use("alice"); u.Use.Sessions.Used != 3 {
		t.Errorf("the use is %+v", u)
	}
	d.CallAs(t, alice, http.MethodDelete, "/v1/sessions", nil)
	if u := use("alice"); u.Use.Sessions.Used != 0 {
		t.Errorf("the use is %+v", u)
	}
	if code, said := serve(t, nil, "--data-dir", daemon.DataDir(t), "--default-quota", "cookies=1"); code != 2 || !strings.Contains(said, "--default-quota: has no quota \"cookies\"; the quotas are sessions, parked") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}
