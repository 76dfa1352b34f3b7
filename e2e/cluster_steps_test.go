package e2e

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// stoppedSave is a save during which its node is stopped.
type stoppedSave struct {
	ends bool // it ends the session and moves the user's default
	late bool // see [wireSteps]
	at   int  // the step at which the node is stopped

	node    *clusterNode // has no other session
	steps   *wireSteps
	session liveSession
	user    string
	done    chan struct{} // closed when the save has its answer
	status  int           // the answer, with body; 0: none
	body    string
	newest  string // the ID of the snapshot that another node made meanwhile
}

// A node is stopped at each step of a save, for a minute in the long form. Meanwhile another node
// resumes the session, and saves it as the user's default. When the first one continues, what it
// still sends is too late: the newest snapshot and the default are those of the other node.
func TestClusterStopInSave(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	site := apps.StartProbe(t)
	other := c.add(t, "", "--max-sessions", "40")
	total := c.countSteps(t, site.URL+"/")
	t.Logf("a snapshot has %d steps, an end %d", total[false], total[true])
	if !storetest.Long() {
		c.stopInSaves(t, other, site.URL+"/", []*stoppedSave{
			{at: total[false] / 2},
			{at: total[false] * 3 / 4, late: true},
			{at: total[true] * 3 / 5, ends: true, late: true},
			{at: total[true] * 4 / 5, ends: true},
		})
		return
	}
	const batch = 24
	var saves []*stoppedSave
	for _, ends := range []bool{false, true} {
		for _, late := range []bool{false, true} {
			for at := range total[ends] {
				saves = append(saves, &stoppedSave{at: at + 1, ends: ends, late: late})
			}
		}
	}
	for len(saves) > 0 {
		n := min(batch, len(saves))
		c.stopInSaves(t, other, site.URL+"/", saves[:n])
		saves = saves[n:]
	}
}

// countSteps returns how many steps a snapshot and the end of a session have.
func (c *cluster) countSteps(t *testing.T, url string) map[bool]int {
	t.Helper()
	total := map[bool]int{}
	steps := c.newWireSteps(t)
	n := c.addWith(t, steps.database, steps.store, "")
	c.only(t, 1)
	s, _, _ := n.logIn(t, obj{"user_id": "ada"}, url, "login=yes")
	n.Must(t, http.StatusCreated, http.MethodPost, "/v1/sessions/"+s.ID+"/snapshots", obj{})
	n.openedAgain(t, s, url)
	steps.arm(0, false, nil)
	n.Must(t, http.StatusCreated, http.MethodPost, "/v1/sessions/"+s.ID+"/snapshots", obj{})
	total[false] = steps.counted()
	n.openedAgain(t, s, url)
	steps.arm(0, false, nil)
	finish(t, n.Daemon, s.ID, toFiles+andDefault)
	total[true] = steps.counted()
	c.drain(t, 1, true)
	return total
}

// openedAgain changes the page of a session, so that there is something to save.
func (n *clusterNode) openedAgain(t *testing.T, s liveSession, url string) {
	t.Helper()
	w := dial(t, s.CDP)
	page, _ := w.page()
	w.open(page, url+"?again")
	w.eval(page, `localStorage.setItem("again", "yes"); 1`)
}

// stopInSaves has each of these saves made by a new node, which is stopped.
func (c *cluster) stopInSaves(t *testing.T, other *clusterNode, url string, saves []*stoppedSave) {
	t.Helper()
	c.drain(t, 0, true)
	began := len(c.nodes)
	for _, s := range saves {
		s.user = "user-" + strconv.Itoa(len(c.nodes))
		c.beginStopped(t, other, url, s)
	}
	c.drain(t, 0, false)
	for _, s := range saves {
		s.run(t)
	}
	last := time.Now()
	if storetest.Long() {
		daemon.Eventually(t, grace, "the nodes are stopped for a minute", func() bool { return time.Since(last) > time.Minute })
	}
	for _, s := range saves {
		s.overtake(t, other, url)
	}
	for _, s := range saves {
		close(s.steps.continued)
		s.node.cont(t)
	}
	for _, s := range saves {
		s.check(t, other, url)
	}
	for i := range saves {
		c.drain(t, began+i, true)
		c.nodes[began+i].Stop(t)
	}
}

// beginStopped adds a node and begins a session on it. No other node has room for it.
func (c *cluster) beginStopped(t *testing.T, other *clusterNode, url string, s *stoppedSave) {
	t.Helper()
	s.steps = c.newWireSteps(t)
	s.node = c.addWith(t, s.steps.database, s.steps.store, "", "--max-sessions", "1")
	t.Cleanup(func() { _ = syscall.Kill(s.node.PID(), syscall.SIGCONT) }) // or it could not be stopped
	s.session, _, _ = s.node.logIn(t, obj{"user_id": s.user}, url, "login=yes")
	if len(s.node.Processes()) == 0 {
		t.Fatal("the session is on another node")
	}
	s.node.Must(t, http.StatusCreated, http.MethodPost, "/v1/sessions/"+s.session.ID+"/snapshots", obj{})
	s.node.openedAgain(t, s.session, url)
}

// run begins the save and returns when the node is stopped.
func (s *stoppedSave) run(t *testing.T) {
	t.Helper()
	method, path := http.MethodPost, "/v1/sessions/"+s.session.ID+"/snapshots"
	if s.ends {
		method, path = http.MethodDelete, "/v1/sessions/"+s.session.ID+"?"+toFiles+andDefault
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.node.URL+path, strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"X-Api-Key": {daemon.Key}, "Content-Type": {"application/json"}}
	s.steps.arm(s.at, s.late, func() { s.node.stop(t) })
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return
		}
		defer func() { _ = answer.Body.Close() }()
		body, _ := io.ReadAll(answer.Body)
		s.status, s.body = answer.StatusCode, string(body)
	}()
	select {
	case <-s.steps.stopped:
	case <-s.done:
		if !s.steps.isStopped() { // it had fewer steps
			s.node.stop(t)
		}
	}
}

// overtake resumes and saves the session on another node.
func (s *stoppedSave) overtake(t *testing.T, other *clusterNode, url string) {
	t.Helper()
	daemon.Eventually(t, grace, s.String()+": another node resumes the session", func() bool {
		return other.Call(t, http.MethodPost, "/v1/sessions/"+s.session.ID+"/resume", nil).Status == http.StatusOK
	})
	w := dial(t, look(t, other.Daemon, s.session.ID).CDP)
	page, _ := w.page()
	w.open(page, url)
	w.eval(page, `document.cookie = "other=yes; max-age=100000"; 1`)
	e := finish(t, other.Daemon, s.session.ID, toFiles+andDefault)
	if e.Snapshot == nil || e.Default == nil || !e.Default.Moved {
		t.Fatalf("%s: the end on the other node: %+v", s, e)
	}
	s.newest = e.Snapshot.ID
}

var snapshotID = regexp.MustCompile(`"snapshot(?:_id)?":\s*(?:\{[^{}]*"id":\s*)?"([^"]+)"`)

// check checks what is there when the node has continued.
func (s *stoppedSave) check(t *testing.T, other *clusterNode, url string) {
	t.Helper()
	<-s.done
	t.Logf("%s: answered %d %s", s, s.status, s.body)
	daemon.Eventually(t, grace, "the node has a lease again", func() bool { return s.node.Call(t, http.MethodGet, "/readyz", nil).Status == http.StatusOK })
	daemon.Eventually(t, grace, "no run directory is left", func() bool { return len(runDirs(t, s.node.Daemon)) == 0 })
	if newest := newestSnapshot(t, other, s.session.ID); !strings.Contains(newest, s.newest) {
		t.Errorf("%s: the newest snapshot is %s, want %s", s, newest, s.newest)
	}
	def := other.Must(t, http.StatusOK, http.MethodGet, "/v1/users/"+s.user+"/default", nil)
	if !strings.Contains(string(def.Body), s.newest) {
		t.Errorf("%s: the default is %s, want %s", s, def.Body, s.newest)
	}
	if s.status == http.StatusOK || s.status == http.StatusCreated {
		list := other.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions/"+s.session.ID+"/snapshots", nil)
		id := snapshotID.FindStringSubmatch(s.body)
		if id == nil || !strings.Contains(string(list.Body), id[1]) {
			t.Errorf("%s: answered %d %s, but the snapshots are %s", s, s.status, s.body, list.Body)
		}
	}
	back := begin(t, other.Daemon, obj{"restore_default_environment_from_user_id": s.user})
	if got := cookieOf(t, back.CDP, url); got != "login=yes; other=yes" {
		t.Errorf("%s: the default has the cookies %q", s, got)
	}
	finish(t, other.Daemon, back.ID, throwAway)
}

func (s *stoppedSave) String() string {
	name := "snapshot"
	if s.ends {
		name = "end"
	}
	if s.late {
		name += ", late,"
	}
	return name + " stopped at step " + strconv.Itoa(s.at)
}
