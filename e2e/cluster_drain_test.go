package e2e

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
)

// clusterState is what GET /v1/nodes says of a node.
type clusterState struct {
	ID      string `json:"node_id"`
	State   string
	Live    int
	Free    int
	Staying []struct {
		SessionID string `json:"session_id"`
		Reason    string
	}
}

// state returns what a node says of another one, or of itself.
func (n *clusterNode) state(t *testing.T, of string) clusterState {
	t.Helper()
	var list struct{ Nodes []clusterState }
	n.Must(t, http.StatusOK, http.MethodGet, "/v1/nodes", nil).Into(t, &list)
	i := slices.IndexFunc(list.Nodes, func(s clusterState) bool { return s.ID == of })
	if i < 0 {
		t.Fatalf("node %s is not listed: %+v", of, list)
	}
	return list.Nodes[i]
}

// pages returns the addresses of a client's pages, sorted.
func (w *wire) pages() (all []string) {
	w.t.Helper()
	for _, info := range w.targets() {
		if info.Type == "page" {
			all = append(all, info.URL)
		}
	}
	slices.Sort(all)
	return all
}

// Node a is drained. Its session moves to b: its client is closed with 1012, and connects again at
// the same cdp_url, with the same tabs, logged in. Then b stops, and the session moves back. What
// cannot move stays and is named. A resume that the drained node gets is placed on the other one.
func TestClusterDrain(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	site := apps.StartProbe(t)
	c.only(t, 0)
	stays := begin(t, a.Daemon, obj{"user_id": "bob", "read_only": true})
	frozen, _, _ := a.logIn(t, obj{"user_id": "eve"}, site.URL+"/", "eve=yes")
	finish(t, a.Daemon, frozen.ID, toMemory)
	s, w, page := a.logIn(t, obj{"user_id": "ada", "labels": obj{"team": "dev"}, "timezone": "Asia/Tokyo"}, site.URL+"/", "login=yes")
	w.eval(page, `sessionStorage.draft = "kept"; 1`)
	var second struct {
		ID string `json:"targetId"`
	}
	w.call("", "Target.createTarget", obj{"url": "about:blank"}, &second)
	w.open(w.attach(second.ID), site.URL+"/second")
	tabs := []string{site.URL + "/", site.URL + "/second"}

	check := func(w *wire, on *clusterNode, node string) {
		t.Helper()
		if got := w.pages(); !slices.Equal(got, tabs) {
			t.Errorf("tabs on %s: %q, not %q", node, got, tabs)
		}
		for _, info := range w.targets() {
			if info.Type != "page" || info.URL != site.URL+"/" {
				continue
			}
			page := w.attach(info.ID)
			w.awaitRestored(page)
			if got := w.eval(page, `[document.cookie, sessionStorage.draft, Intl.DateTimeFormat().resolvedOptions().timeZone].join(" ")`); got != "login=yes kept Asia/Tokyo" {
				t.Errorf("the page on %s: %q", node, got)
			}
		}
		var now struct {
			liveSession
			Labels map[string]string
		}
		on.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions/"+s.ID, nil).Into(t, &now)
		if now.Status != "running" || now.Labels["team"] != "dev" || now.UserID != "ada" {
			t.Errorf("the session on %s: %+v", node, now)
		}
	}
	c.drain(t, 1, false)
	c.drain(t, 0, true)
	if code := w.ended(); code != 1012 {
		t.Errorf("the client was closed with %d", code)
	}
	closed := time.Now()
	w = dialMoved(t, s.CDP) // a's address: the call waits, and is passed on
	t.Logf("connected again after %s", time.Since(closed).Round(10*time.Millisecond))
	check(w, a, "b")
	daemon.Eventually(t, grace, "the status of node a names the session that stays", func() bool {
		at := b.state(t, "a")
		return at.State == "draining" && at.Live == 1 && len(at.Staying) == 1 && at.Staying[0].SessionID == stays.ID
	})

	if code, said := stasis(t, nil, "node", "drain", "--wait", "2m", "--url", a.URL, "--key", daemon.Key, "a"); code != 0 || !strings.Contains(said, "stay on node a: 1.") {
		t.Errorf("the drain that waits ended with %d:\n%s", code, said)
	}

	// The Chrome that the memory snapshot keeps on a serves no other node. Its files do: a resume
	// that a gets is placed on b.
	back := a.resume(t, frozen.ID)
	if got := cookieOf(t, back.CDP, site.URL+"/"); got != "eve=yes" || back.Restored == nil || back.Restored.Path == "parked" {
		t.Errorf("resumed with %q: %+v", got, back.Restored)
	}
	if at := b.state(t, "a"); at.Live != 1 {
		t.Errorf("%d sessions live on the drained node", at.Live)
	}
	finish(t, a.Daemon, frozen.ID, throwAway)

	c.drain(t, 0, false)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.Stop(t)
	}()
	if code := w.ended(); code != 1012 {
		t.Errorf("the client was closed with %d when its node stopped", code)
	}
	w = dialMoved(t, s.CDP)
	check(w, a, "a")
	<-stopped
	if at := a.state(t, "b"); at.State != "stopped" {
		t.Errorf("node b is %s", at.State)
	}
	if left := runDirs(t, b.Daemon); len(left) != 0 {
		t.Errorf("left on b's disk: %q", left)
	}
	finish(t, a.Daemon, s.ID, toFiles)
	finish(t, a.Daemon, stays.ID, throwAway)
}

// dialMoved connects to a session that moves to another node. On a busy machine a move can take longer
// than the daemon lets a call wait for it.
func dialMoved(t *testing.T, url string) (w *wire) {
	t.Helper()
	daemon.Eventually(t, grace, "the session has moved", func() bool {
		ws, answer, err := websocket.Dial(t.Context(), url, nil) //nolint:bodyclose // an upgrade's answer has none
		if err != nil && (answer == nil || answer.StatusCode != http.StatusServiceUnavailable) {
			t.Fatalf("dial: %v", err)
		}
		if err == nil {
			w = newWire(t, ws)
		}
		return err == nil
	})
	return w
}

// moved waits until a node has ended a session as moved.
func (n *clusterNode) moved(t *testing.T, id string) {
	t.Helper()
	daemon.Eventually(t, grace, "the session is ended as moved", func() bool {
		var list []liveSession
		n.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions", nil).Into(t, &list)
		return slices.ContainsFunc(list, func(s liveSession) bool { return s.ID == id && s.Why == "moved" })
	})
}

// The node to which a session is to move does not answer, and the drained one dies after it has
// ended the session as moved. The session continues as soon as a node looks, with all that it had.
func TestClusterMoveInterrupted(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	site := apps.StartProbe(t)
	c.only(t, 0)
	s, w, _ := a.logIn(t, obj{"user_id": "ada"}, site.URL+"/", "login=yes")
	c.drain(t, 1, false)
	daemon.Eventually(t, grace, "node b has said that it has room", func() bool { return a.state(t, "b").Free > 0 })
	// The save waits for this lock until b has stopped. b needs its lease when a chooses a node, and
	// again when a has saved.
	release := lockTable(t, c.server, "commits")
	c.drain(t, 0, true)
	if code := w.ended(); code != 1012 {
		t.Errorf("the client was closed with %d", code)
	}
	daemon.Eventually(t, grace, "the commit waits", func() bool { return lockAwaited(t, c.server) })
	b.stop(t)
	t.Cleanup(func() { b.cont(t) }) // or it could not be stopped
	release()
	a.moved(t, s.ID)
	a.kill(t)
	b.cont(t)
	daemon.Eventually(t, grace, "the session continues", func() bool {
		got := b.Call(t, http.MethodGet, "/v1/sessions/"+s.ID, nil)
		var now liveSession
		if got.Status == http.StatusOK {
			got.Into(t, &now)
		}
		return now.Status == "ready"
	})
	if got := cookieOf(t, look(t, b.Daemon, s.ID).CDP, site.URL+"/"); got != "login=yes" {
		t.Errorf("continued: %q", got)
	}
	a.Restart(t)
	if left := runDirs(t, a.Daemon); len(left) != 0 {
		t.Errorf("left on a's disk: %q", left)
	}
	finish(t, b.Daemon, s.ID, throwAway)
}
