package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
)

// cookieOf returns the cookies of a session's page of the site.
func cookieOf(t *testing.T, cdp, url string) string {
	t.Helper()
	w := dial(t, cdp)
	page, _ := w.page()
	w.open(page, url)
	return w.eval(page, `document.cookie`)
}

// resume resumes a session on a node and returns it.
func (n *clusterNode) resume(t *testing.T, id string) liveSession {
	t.Helper()
	n.Must(t, http.StatusOK, http.MethodPost, "/v1/sessions/"+id+"/resume", nil)
	return look(t, n.Daemon, id)
}

// A node dies. Another one ends its session as crashed within 20 seconds, and resumes it from its
// checkpoint, still logged in. A session with restart: on_crash lives again by itself. The node
// starts again, and keeps what it had apart from the session that has gone on.
func TestClusterKill(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	site := apps.StartProbe(t)
	c.only(t, 0)
	logIn := func(body obj, cookie string) liveSession {
		s, _, _ := a.logIn(t, body, site.URL+"/", cookie)
		a.Must(t, http.StatusCreated, http.MethodPost, "/v1/sessions/"+s.ID+"/snapshots", obj{})
		return s
	}
	s := logIn(obj{"user_id": "ada"}, "login=yes")
	again := logIn(obj{"user_id": "bob", "restart": "on_crash"}, "bob=yes")
	daemon.Eventually(t, grace, "b may take over", func() bool { return strings.Contains(b.Log(), "joined") })
	c.drain(t, 1, false)

	a.kill(t)
	died := time.Now()
	lost := c.lost(t, b, s.ID)
	t.Logf("reported as lost after %s", time.Since(died).Round(100*time.Millisecond))
	if lost.Status != "error" {
		t.Errorf("the lost session: %+v", lost)
	}
	back := b.resume(t, s.ID)
	t.Logf("resumed after %s", time.Since(died).Round(100*time.Millisecond))
	if got := cookieOf(t, back.CDP, site.URL+"/"); got != "login=yes" {
		t.Errorf("resumed: %q", got)
	}
	daemon.Eventually(t, grace, "the other session lives again", func() bool { return look(t, b.Daemon, again.ID).Status == "ready" })
	restarted := look(t, b.Daemon, again.ID)
	if got := cookieOf(t, restarted.CDP, site.URL+"/"); got != "bob=yes" || !restarted.Restarted || back.Restarted {
		t.Errorf("started again: %q, browser_restarted %t; it is %t for the session that was resumed", got, restarted.Restarted, back.Restarted)
	}

	// What a had does not become the newest snapshot of a session that lives on b.
	a.Restart(t)
	if newest := newestSnapshot(t, b, s.ID); newest == "" || strings.Contains(newest, `"rescue":true`) {
		t.Errorf("the newest snapshot: %s", newest)
	}
	var kept []struct {
		Labels map[string]string
	}
	b.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions?user_id=ada", nil).Into(t, &kept)
	if len(kept) != 2 || kept[0].Labels["rescued_from"] != s.ID && kept[1].Labels["rescued_from"] != s.ID {
		t.Errorf("ada's sessions: %+v", kept)
	}
	if left := runDirs(t, a.Daemon); len(left) != 0 {
		t.Errorf("left on a's disk: %q", left)
	}
	finish(t, b.Daemon, s.ID, throwAway)
	finish(t, b.Daemon, again.ID, throwAway)
}

// logIn creates a session that visits a page and has a cookie of it. It returns the client and the
// CDP session of the page too.
func (n *clusterNode) logIn(t *testing.T, body obj, url, cookie string) (s liveSession, w *wire, page string) {
	t.Helper()
	s = begin(t, n.Daemon, body)
	w = dial(t, s.CDP)
	page, _ = w.page()
	w.open(page, url)
	w.eval(page, `document.cookie = "`+cookie+`; max-age=100000"; 1`)
	return s, w, page
}

func newestSnapshot(t *testing.T, n *clusterNode, id string) string {
	t.Helper()
	a := n.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions/"+id+"/snapshots?limit=1", nil)
	return string(a.Body)
}

// A node is stopped for longer than its lease. Its Chrome stops before another node takes over.
// When the node continues, it ends its session and saves what it had; that is the newest snapshot,
// because nobody has resumed the session.
func TestClusterStop(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	site := apps.StartProbe(t)
	c.only(t, 0)
	s, _, _ := a.logIn(t, obj{"user_id": "ada"}, site.URL+"/", "login=yes")
	a.Must(t, http.StatusCreated, http.MethodPost, "/v1/sessions/"+s.ID+"/snapshots", obj{})

	a.stop(t)
	var listed []liveSession
	list := b.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions", nil)
	list.Into(t, &listed)
	if missing := list.Header.Get("X-Missing-Nodes"); len(listed) != 1 || listed[0].Why == "" && (missing != "a" || listed[0].CDP != "") {
		t.Errorf("the list without the stopped node, missing %q: %s", missing, list.Body)
	}
	c.lost(t, b, s.ID)
	for _, p := range a.Processes() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
		if err == nil && !strings.Contains(string(stat), ") T ") {
			t.Errorf("a process of a Chrome of the stopped node runs: %s", p.Command)
		}
	}
	a.cont(t)
	daemon.Eventually(t, grace, "the node saves what it had", func() bool {
		return strings.Contains(newestSnapshot(t, b, s.ID), `"rescue":true`)
	})
	daemon.Eventually(t, grace, "the node has a lease again", func() bool { return a.Call(t, http.MethodGet, "/readyz", nil).Status == http.StatusOK })
	daemon.Eventually(t, grace, "no run directory is left", func() bool { return len(runDirs(t, a.Daemon)) == 0 })
	back := b.resume(t, s.ID)
	if got := cookieOf(t, back.CDP, site.URL+"/"); got != "login=yes" {
		t.Errorf("resumed: %q", got)
	}
	finish(t, b.Daemon, s.ID, throwAway)
}

// listed checks that all nodes list a live session with one client in the same way, with its node.
func (c *cluster) listed(t *testing.T, id, node string) {
	t.Helper()
	for _, n := range c.nodes {
		var all []struct {
			liveSession
			NodeID string `json:"node_id"`
			Usage  struct{ Clients int }
		}
		var a daemon.Answer
		daemon.Eventually(t, grace, "the nodes answer in time", func() bool {
			a = n.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions?status=running", nil)
			return a.Header.Get("X-Missing-Nodes") == ""
		})
		a.Into(t, &all)
		if len(all) != 1 || all[0].ID != id || all[0].NodeID != node || all[0].Usage.Clients != 1 || !strings.HasPrefix(all[0].CDP, strings.Replace(n.URL, "http", "ws", 1)) {
			t.Errorf("the list of %s: %s", n.URL, a.Body)
		}
		at := []string{"--url", n.URL, "--key", daemon.Key}
		daemon.Eventually(t, grace, "the list has the memory of the session", func() bool {
			code, said := stasis(t, nil, append([]string{"session", "list", "--status", "running"}, at...)...)
			return code == 0 && regexp.MustCompile(`(?s)MEMORY +NODE.*`+id+`.* 1 +\d+ MiB +`+node+`\n`).MatchString(said)
		})
		if code, said := stasis(t, nil, append([]string{"session", "show", id}, at...)...); code != 0 || !regexp.MustCompile(`node: +`+node+`\n`).MatchString(said) {
			t.Errorf("session show: %d %s", code, said)
		}
	}
}

// A node passes calls on to the one that has the session. A client that leaves its create, and
// sends it again to any node, gets one session, whose creation is recorded once.
func TestClusterHop(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	c.only(t, 1)
	daemon.Eventually(t, grace, "creates are placed on b", func() bool {
		s := begin(t, a.Daemon, obj{})
		placed := len(b.Processes()) > 0
		finish(t, a.Daemon, s.ID, throwAway)
		return placed
	})

	ctx, leave := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer leave()
	first, err := http.NewRequestWithContext(ctx, http.MethodPost, a.URL+"/v1/sessions", strings.NewReader(`{"user_id":"ada"}`))
	if err != nil {
		t.Fatal(err)
	}
	first.Header = http.Header{"X-Api-Key": {daemon.Key}, "Content-Type": {"application/json"}, "Idempotency-Key": {"k"}}
	if answer, err := http.DefaultClient.Do(first); err == nil { // the test is as good if it was in time
		_ = answer.Body.Close()
	}
	again := func(n *clusterNode) (s liveSession) {
		daemon.Eventually(t, grace, "the repeat is answered", func() bool {
			got := n.Send(t, daemon.Key, http.MethodPost, "/v1/sessions", strings.NewReader(`{"user_id":"ada"}`), http.Header{"Idempotency-Key": {"k"}})
			if got.Status == http.StatusConflict { // a slow machine: the first one is still running
				return false
			}
			got.Into(t, &s)
			return true
		})
		return s
	}
	s := again(a)
	if other := again(b); other.ID != s.ID {
		t.Errorf("the repeat on b made another session: %s, not %s", other.ID, s.ID)
	}
	w := dial(t, s.CDP)
	page, _ := w.page()
	if got := w.eval(page, `String(1+1)`); got != "2" {
		t.Errorf("over a: %q", got)
	}
	wants(t, a.CallAs(t, "wrong", http.MethodGet, "/v1/sessions/"+s.ID, nil), http.StatusUnauthorized, "unauthorized")
	c.listed(t, s.ID, "b")

	made := func() (n int) {
		for _, e := range audited(t, a.Daemon, "call=createSession&session_id="+s.ID) {
			if e.Outcome == "ok" && e.Detail == "" {
				n++
			}
		}
		return n
	}
	daemon.Eventually(t, grace, "the creation is in the audit log", func() bool { return made() > 0 })
	if n := made(); n != 1 {
		t.Errorf("the creation is recorded %d times", n)
	}
	finish(t, a.Daemon, s.ID, throwAway)
}
