package e2e

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
)

// clusterState is what GET /v1/nodes says of a node.
type clusterState struct {
	ID      string `json:"node_id"`
	State   string
	Live    int
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
// cannot move stays and is named, and is saved when its node stops.
func TestClusterDrain(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	a, b := c.nodes[0], c.nodes[1]
	site := apps.StartProbe(t)
	c.only(t, 0)
	s := begin(t, a.Daemon, obj{"user_id": "ada", "labels": obj{"team": "dev"}, "timezone": "Asia/Tokyo"})
	stays := begin(t, a.Daemon, obj{"user_id": "bob", "read_only": true})
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, site.URL+"/")
	w.eval(page, `document.cookie = "login=yes; max-age=100000"; sessionStorage.draft = "kept"; 1`)
	w.call("", "Target.createTarget", obj{"url": site.URL + "/second"}, nil)
	daemon.Eventually(t, grace, "the second tab has its address", func() bool { return slices.Contains(w.pages(), site.URL+"/second") })
	tabs := w.pages()

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
	w = dial(t, s.CDP) // a's address: the call waits, and is passed on
	t.Logf("connected again after %s", time.Since(closed).Round(10*time.Millisecond))
	check(w, a, "b")
	daemon.Eventually(t, grace, "the status of node a names the session that stays", func() bool {
		at := b.state(t, "a")
		return at.State == "draining" && at.Live == 1 && len(at.Staying) == 1 && at.Staying[0].SessionID == stays.ID
	})

	c.drain(t, 0, false)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		b.Stop(t)
	}()
	if code := w.ended(); code != 1012 {
		t.Errorf("the client was closed with %d when its node stopped", code)
	}
	w = dial(t, s.CDP)
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
