package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// waiting returns how many creates wait that came to a node, by its metrics.
func (n *clusterNode) waiting(t *testing.T) string {
	t.Helper()
	_, m, _ := strings.Cut(string(n.Must(t, http.StatusOK, http.MethodGet, "/metrics", nil).Body), "\nstasis_creates_waiting ")
	m, _, _ = strings.Cut(m, "\n")
	return m
}

// waitingCreate is a create that waits.
type waitingCreate struct {
	name string
	done chan daemon.Answer
}

// createWaiting has a create wait at a node, as the nth there.
func (n *clusterNode) createWaiting(ctx context.Context, t *testing.T, name, user, nth string) waitingCreate {
	t.Helper()
	w := waitingCreate{name, make(chan daemon.Answer, 1)}
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL+"/v1/sessions", strings.NewReader(`{"wait_seconds":600,"session_id":"`+name+`","user_id":"`+user+`"}`))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header = http.Header{"X-Api-Key": {daemon.Key}, "Content-Type": {"application/json"}}
		if answer, err := http.DefaultClient.Do(r); err == nil {
			_ = answer.Body.Close()
			w.done <- daemon.Answer{Status: answer.StatusCode}
		}
	}()
	daemon.Eventually(t, grace, "the create "+name+" waits", func() bool { return n.waiting(t) == nth })
	return w
}

// placed waits until one of the creates has a session, and returns its name.
func placed(t *testing.T, all []waitingCreate) (name string) {
	t.Helper()
	daemon.Eventually(t, grace, "a create has a place", func() bool {
		for _, w := range all {
			select {
			case a := <-w.done:
				if name = w.name; a.Status != http.StatusCreated {
					t.Fatalf("the create %s: %d", w.name, a.Status)
				}
				return true
			default:
			}
		}
		return false
	})
	return name
}

// takeTurns reports whether so many creates of nodes a and b wait, and each would get its turn. A create
// whose turn found no free place lets others go first for a second. That happens if a node is slow to
// report that a place is taken.
func (c *cluster) takeTurns(t *testing.T, n int) bool {
	t.Helper()
	return c.server.Exec(t.Context(), "stasis", fmt.Sprintf("SELECT 1 / (SELECT (COUNT(*) = %d)::int FROM waiting_creates "+
		"WHERE node_id IN ('a', 'b') AND turn = 0 AND paused_until <= extract(epoch from clock_timestamp()) * 1000000000)", n)) == nil
}

// All places of three nodes are taken. Creates wait for the next one, whichever node has it: in turn
// between users, and in their order for one user. A create that does not wait gets none. The creates
// that came to a node which dies wait no more, nor does one whose client hangs up.
func TestClusterWait(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3, "--max-sessions", "1")
	a, b, last := c.nodes[0], c.nodes[1], c.nodes[2]
	daemon.Eventually(t, grace, "a knows that each node has a place", func() bool {
		return a.state(t, "a").Free+a.state(t, "b").Free+a.state(t, "c").Free == 3
	})
	var live []string
	for range c.nodes {
		live = append(live, begin(t, a.Daemon, obj{}).ID)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	all := []waitingCreate{
		last.createWaiting(t.Context(), t, "lost", "lou", "1"),
		a.createWaiting(t.Context(), t, "ada-1", "ada", "1"),
		a.createWaiting(t.Context(), t, "ada-2", "ada", "2"),
		b.createWaiting(ctx, t, "gone", "gus", "1"),
		b.createWaiting(t.Context(), t, "bob-1", "bob", "2"),
	}
	hangUp()
	daemon.Eventually(t, grace, "the client that hung up waits no more", func() bool { return b.waiting(t) == "1" })
	wants(t, b.Call(t, http.MethodPost, "/v1/sessions", obj{}), http.StatusTooManyRequests, "too_many_sessions")

	// Node c dies, with its session and its waiting create. Its place is gone too.
	last.kill(t)
	var left []string
	for _, id := range live {
		place := b.Call(t, http.MethodGet, "/v1/sessions/"+id, nil)
		if place.Status == http.StatusOK {
			left = append(left, id)
		}
	}
	if len(left) != 2 {
		t.Fatalf("%d sessions live on the nodes that are left", len(left))
	}
	for i, want := range []string{"ada-1", "bob-1", "ada-2"} {
		daemon.Eventually(t, grace, "no place is free, and all creates wait", func() bool {
			return a.state(t, "a").Free+a.state(t, "b").Free == 0 && c.takeTurns(t, 3-i)
		})
		finish(t, b.Daemon, left[0], throwAway)
		got := placed(t, all)
		if got != want {
			t.Errorf("%s got the place, not %s", got, want)
		}
		left = append(left[1:], got)
	}
	if got := a.waiting(t) + b.waiting(t); got != "00" {
		t.Errorf("%s creates still wait", got)
	}
	for _, id := range left {
		finish(t, b.Daemon, id, throwAway)
	}
}
