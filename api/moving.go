package api

import (
	"context"
	"net/http"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/placement"
)

const (
	// movingPatience is how long a call waits for a session that moves to another node.
	movingPatience = 30 * time.Second
	// movingLook is the time between two looks.
	movingLook = 200 * time.Millisecond
)

// moving has a call wait while its session moves to another node.
type moving struct {
	cluster *Cluster
	id      string
	ctx     context.Context // of the call
	until   time.Time
	now     func() time.Time
}

func (s *Server) newMoving(c *call, id string) *moving {
	return &moving{s.cluster, id, c.Request().Context(), s.now().Add(movingPatience), s.now}
}

// awaitHere waits while the session is being ended on this node.
func (m *moving) awaitHere() error {
	for m.cluster.Moving(m.id) {
		if err := m.pause(); err != nil {
			return err
		}
	}
	return nil
}

// await waits until a session has a node again, and returns where it is.
func (m *moving) await(place placement.Place) (placement.Place, error) {
	for place.Moving {
		if err := m.pause(); err != nil {
			return place, err
		}
		var err error
		if place, err = m.cluster.Peers.Refind(m.ctx, m.id); err != nil {
			return place, err
		}
	}
	return place, nil
}

// pause returns an error if the call has waited long enough.
func (m *moving) pause() error {
	if m.now().After(m.until) {
		return fault.New(fault.NodeUnavailable, "api.moving", "the session moves to another node; try again")
	}
	select {
	case <-time.After(movingLook):
		return nil
	case <-m.ctx.Done():
		return fault.Wrap(m.ctx.Err(), fault.Timeout, "api.moving", "the request was cancelled")
	}
}

// take answers another node that wants this one to continue a session.
func (s *Server) take(c *call) error {
	id, err := c.sessionID()
	if err == nil {
		err = s.cluster.Take(c.Request().Context(), id)
	}
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// give sends the files of a session to the node that continues it. If that fails when an answer has
// begun, the connection ends, so that the other node does not take it for whole.
func (s *Server) give(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	defer s.connections.serve(connectionOf(c.Request()))()
	c.Response().Header().Set("Content-Type", "application/octet-stream")
	err = s.cluster.Give(c.Request().Context(), id, c.Response())
	if err != nil && c.Response().Committed {
		s.log.Warn("the files of a session that moves could not be sent", "session", id, "error", err)
		panic(http.ErrAbortHandler)
	}
	return err
}
