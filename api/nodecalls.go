package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/placement"
)

const (
	// askPatience is how long a list of nodes waits for the answers of the others.
	askPatience = 3 * time.Second
	// backPatience is how long another node may need to answer, if it has asked for that call.
	backPatience = 5 * time.Second
)

// askAll sets which of the other nodes that have a lease answer this one. All are asked at once. A nil
// Cluster asks none.
func (cluster *Cluster) askAll(ctx context.Context, list []placement.Info) error {
	if cluster == nil {
		return nil
	}
	cluster.Peers.Forget() // so that it has the nodes of the list
	known, err := cluster.Peers.Nodes(ctx)
	if err != nil {
		return err
	}
	nodes := map[string]placement.Node{}
	for _, n := range known {
		nodes[n.ID] = n
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	var asking sync.WaitGroup
	for i := range list {
		n := nodes[list[i].ID]
		if n.ID == cluster.Peers.Self() || !n.Leased() {
			continue
		}
		asking.Go(func() {
			answers := cluster.Forwarder.Answers(ctx, n) == nil
			list[i].Answers = &answers
		})
	}
	asking.Wait()
	return nil
}

// ownCall answers a call that another node has made itself. done is false for all other calls.
func (s *Server) ownCall(c *call) (done bool, err error) {
	h, passed := forward.HopOf(c.Request().Context())
	switch {
	case !passed:
		return false, nil
	case h.Purpose == forward.ToMove:
		return true, s.take(c)
	case h.Purpose == forward.ToFiles:
		return true, s.give(c)
	case h.Purpose == forward.ToAnswer:
		return true, c.JSON(http.StatusOK, forward.Health{Status: forward.Healthy})
	case h.Purpose == forward.ToTry:
		return true, s.tryBack(c, h.From)
	}
	return false, nil
}

// tryBack calls the node that has asked for that, at the URL that it has signed in the catalogue,
// and answers whether it was reached.
func (s *Server) tryBack(c *call, id string) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), backPatience)
	defer cancel()
	s.cluster.Peers.Forget() // that node has just joined
	node, err := s.cluster.Peers.Node(ctx, id)
	if err != nil {
		return err
	}
	h := forward.Health{Status: forward.Healthy}
	if err := s.cluster.Forwarder.Answers(ctx, node); err != nil {
		h.Unreached = fault.MessageOf(err)
	}
	return c.JSON(http.StatusOK, h)
}
