package e2e

import (
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/e2e/rig"
	"github.com/stasisd/stasis/profiles/postgrestest"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

// cluster is several daemons on one PostgreSQL database, one bucket and the same keys.
type cluster struct {
	server *postgrestest.Server
	store  *s3test.Server
	nodes  []*clusterNode
}

// clusterNode is one of them.
type clusterNode struct{ *daemon.Daemon }

// startCluster starts n daemons, until the test ends.
func startCluster(t *testing.T, n int, args ...string) *cluster {
	t.Helper()
	c := newCluster(t)
	for range n {
		c.add(t, "", args...)
	}
	return c
}

// newCluster starts the database and the bucket of a cluster without nodes.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	return &cluster{server: startPostgres(t), store: s3test.Start(t)}
}

// options are those of a daemon that uses the database and the bucket.
func (c *cluster) options(args ...string) daemon.Options {
	return optionsWith(c.server.URL("stasis"), c.store.URL("stasis"), args...)
}

func optionsWith(database, store string, args ...string) daemon.Options {
	return daemon.Options{NoSpares: true, Env: []string{"STASIS_DATABASE=" + database, "AWS_ACCESS_KEY_ID=" + s3test.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3test.SecretKey},
		Args: append([]string{"--engine", "shell", "--store", store}, args...)}
}

// add starts one more node. dir is its data directory; "": a new one, with the keys of the first
// node.
func (c *cluster) add(t *testing.T, dir string, args ...string) *clusterNode {
	t.Helper()
	return c.addWith(t, c.server.URL("stasis"), c.store.URL("stasis"), dir, args...)
}

// addWith is add for a node that reaches the database and the bucket at these URLs.
func (c *cluster) addWith(t *testing.T, database, store, dir string, args ...string) *clusterNode {
	t.Helper()
	at := freeAddress(t)
	o := optionsWith(database, store, append([]string{"--listen", at, "--node-url", "http://" + at, "--node-id", nodeName(len(c.nodes)), "--shutdown-notice", "0s"}, args...)...)
	o.Dir = dir
	if dir == "" && len(c.nodes) > 0 {
		o.Dir = daemon.DataDir(t)
		if err := rig.CopyKeys(c.nodes[0].Dir, o.Dir); err != nil {
			t.Fatal(err)
		}
	}
	n := &clusterNode{daemon.Start(t, o)}
	c.nodes = append(c.nodes, n)
	return n
}

// freeAddress returns an address of loopback at which nothing listens. A node names its address
// before it listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", freePort(t))
}

// only has creates through one node placed on that node. The other ones must have no sessions,
// which would move.
func (c *cluster) only(t *testing.T, on int) {
	t.Helper()
	for i := range c.nodes {
		c.nodes[on].drain(t, i, i != on)
	}
}

// drain sets whether a node is drained.
func (c *cluster) drain(t *testing.T, i int, drained bool) {
	t.Helper()
	c.nodes[i].drain(t, i, drained)
}

// drain sets through this node whether a node is drained. Other nodes may use
// their old list of nodes for one more second.
func (n *clusterNode) drain(t *testing.T, i int, drained bool) {
	t.Helper()
	method := http.MethodDelete
	if drained {
		method = http.MethodPost
	}
	n.Must(t, http.StatusOK, method, "/v1/nodes/"+nodeName(i)+"/drain", nil)
}

func nodeName(i int) string {
	if i < 26 {
		return string(rune('a' + i))
	}
	return fmt.Sprint("node-", i)
}

// kill ends a node's process at once. No Chrome of it may outlive it.
func (n *clusterNode) kill(t *testing.T) { t.Helper(); n.Kill(t) }

// stop stops a node's process, and cont continues it.
func (n *clusterNode) stop(t *testing.T) { t.Helper(); n.signal(t, syscall.SIGSTOP) }
func (n *clusterNode) cont(t *testing.T) { t.Helper(); n.signal(t, syscall.SIGCONT) }

func (n *clusterNode) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(n.PID(), s); err != nil {
		t.Fatal(err)
	}
}

// lost waits until another node has ended a session of a node that is gone.
func (c *cluster) lost(t *testing.T, by *clusterNode, id string) liveSession {
	t.Helper()
	var s liveSession
	daemon.Eventually(t, grace, "the session is reported as lost", func() bool {
		a := by.Call(t, http.MethodGet, "/v1/sessions/"+id, nil)
		if a.Status != http.StatusOK { // node_unavailable
			return false
		}
		a.Into(t, &s)
		return s.Why == "node_lost"
	})
	return s
}
