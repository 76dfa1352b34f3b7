package api

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/placement"
)

// movingCatalogue has a session that moves from node a to b.
type movingCatalogue struct{ looks, moves int }

func (c *movingCatalogue) Nodes(context.Context) ([]profiles.Node, error) { return nil, nil }

func (c *movingCatalogue) NodeOf(context.Context, string) (placement.Place, error) {
	if c.looks++; c.looks < c.moves {
		return placement.Place{NodeID: "a", Ended: true, Moving: true}, nil
	}
	return placement.Place{NodeID: "b"}, nil
}

// A call about a session that moves waits until it has a node again, but not forever.
func TestCallsWaitWhileASessionMoves(t *testing.T) {
	catalogue := &movingCatalogue{moves: 3}
	now := time.Unix(1000, 0)
	var here atomic.Int64
	here.Store(2)
	c := &Cluster{Peers: placement.NewPeers("a", catalogue, time.Now), Moving: func(string) bool { return here.Add(-1) >= 0 }}
	m := &moving{c, "s", t.Context(), now.Add(movingPatience), func() time.Time { return now }}
	if err := m.awaitHere(); err != nil || here.Load() >= 0 {
		t.Errorf("it still moves here: %v", err)
	}
	place, err := m.await(placement.Place{NodeID: "a", Ended: true, Moving: true})
	if err != nil || place != (placement.Place{NodeID: "b"}) || catalogue.looks != 3 {
		t.Errorf("it is at %+v after %d looks, %v", place, catalogue.looks, err)
	}
	now = now.Add(2 * movingPatience)
	if _, err := m.await(placement.Place{Moving: true}); !fault.Is(err, fault.NodeUnavailable) {
		t.Errorf("it has waited too long: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	m.ctx, m.until = gone, now.Add(time.Hour)
	if _, err := m.await(placement.Place{Moving: true}); !fault.Is(err, fault.Timeout) {
		t.Errorf("the client has gone: %v", err)
	}
}
