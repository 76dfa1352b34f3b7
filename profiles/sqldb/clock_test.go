package sqldb_test

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// A caller that joins, renews or reads a node learns the time of the server, which is on this machine.
func TestClockOfTheServer(t *testing.T) {
	a := openNode(t, postgresURL(t))
	for name, ask := range map[string]func() (profiles.Node, error){
		"join":  func() (profiles.Node, error) { return join(t, a, "a"), nil },
		"renew": func() (profiles.Node, error) { return a.Nodes.Renew(t.Context(), nil) },
		"nodes": func() (profiles.Node, error) {
			all, err := a.Nodes.Nodes(t.Context())
			return append(all, profiles.Node{})[0], err
		},
	} {
		join(t, a, "a")
		began := time.Now().Add(-time.Second)
		n, err := ask()
		if ended := time.Now().Add(time.Second); err != nil || n.Clock.Before(began) || n.Clock.After(ended) {
			t.Errorf("%s: %v, %v; want from %v to %v", name, n.Clock, err, began, ended)
		}
	}
}
