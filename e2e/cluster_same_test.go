package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/e2e/rig"
)

// A second daemon with the ID of a node, and with another data directory, refuses to start. One
// with other keys does so too. The node and its session live on.
func TestClusterSameID(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	a := c.nodes[0]
	s := begin(t, a.Daemon, obj{})
	for want, keys := range map[string]bool{
		"is node a and has a valid lease":           true,
		"the archive key of this node differs from": false,
	} {
		dir, at, id := daemon.DataDir(t), freeAddress(t), "a"
		if keys {
			if err := rig.CopyKeys(a.Dir, dir); err != nil {
				t.Fatal(err)
			}
		} else {
			id = "b"
		}
		code, said := serve(t, []string{"env", "STASIS_DATABASE=" + c.server.URL("stasis")}, "--data-dir", dir, "--no-preflight", "--engine", "shell",
			"--listen", at, "--node-url", "http://"+at, "--node-id", id)
		if code != 2 || !strings.Contains(said, want) {
			t.Errorf("exit code %d, want %q:\n%s", code, want, said)
		}
	}
	a.Must(t, http.StatusOK, http.MethodGet, "/v1/sessions/"+s.ID, nil)
	if strings.Contains(a.Log(), "another node has taken over") {
		t.Error("the node lost its lease")
	}
	finish(t, a.Daemon, s.ID, throwAway)
}
