package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// A node that others do not reach starts. It warns of its --node-url, and lists of nodes say that it
// does not answer.
func TestClusterURL(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	a, b := c.nodes[0], c.add(t, "", "--node-url", "http://127.0.0.1:1")
	daemon.Eventually(t, grace, "b warns", func() bool {
		return regexp.MustCompile(`level=WARN msg="another node does not reach this node at its --node-url.* url=http://127.0.0.1:1 node=a error="dial tcp 127.0.0.1:1: `).MatchString(b.Log())
	})
	for of, want := range map[*clusterNode][]string{a: {`a +active +- `, `b +active +no `}, b: {`a +active +yes `, `b +active +- `}} {
		daemon.Eventually(t, grace, fmt.Sprintf("a list of nodes has %q", want), func() bool {
			code, said := stasis(t, nil, "node", "list", "--url", of.URL, "--key", daemon.Key)
			return code == 0 && !slices.ContainsFunc(want, func(line string) bool { return !regexp.MustCompile("(?m)^" + line).MatchString(said) })
		})
	}
	if strings.Contains(a.Log(), "--node-url") {
		t.Errorf("a warns too:\n%s", a.Log())
	}
}
