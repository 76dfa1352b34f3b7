package api

import (
	"context"
	"net/http"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/placement"
)

// Nodes shows and changes the nodes of a cluster.
type Nodes interface {
	Nodes(ctx context.Context, c access.Caller) ([]placement.Info, error)
	// Drain sets whether a node takes new sessions; node_not_found if there is no such node.
	Drain(ctx context.Context, c access.Caller, id string, draining bool) error
	// Remove removes a node that has stopped; node_in_use if it has a lease or sessions that
	// have not ended.
	Remove(ctx context.Context, c access.Caller, id string) error
}

var _ Nodes = (*placement.Admin)(nil)

// nodeHandler answers /v1/nodes.
type nodeHandler struct {
	nodes   Nodes
	bodies  *bodyDecoder
	cluster *Cluster // nil: the daemon is no node
}

func (h *nodeHandler) list(c *call) error {
	nodes, err := h.nodes.Nodes(c.Request().Context(), c.caller)
	if err != nil {
		return err
	}
	if err := h.cluster.askAll(c.Request().Context(), nodes); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"nodes": nodes})
}

func (h *nodeHandler) drain(c *call) error   { return h.setDraining(c, true) }
func (h *nodeHandler) undrain(c *call) error { return h.setDraining(c, false) }

func (h *nodeHandler) setDraining(c *call, draining bool) error {
	if _, err := h.bodies.decode(c, &none{}); err != nil {
		return err
	}
	id, err := c.param("node_id")
	if err != nil {
		return err
	}
	if err := h.nodes.Drain(c.Request().Context(), c.caller, id, draining); err != nil {
		return err
	}
	if h.cluster != nil {
		h.cluster.Peers.Forget() // the next create through this node takes it into account
	}
	return c.JSON(http.StatusOK, map[string]any{"node_id": id, "draining": draining})
}

func (h *nodeHandler) remove(c *call) error {
	id, err := c.param("node_id")
	if err != nil {
		return err
	}
	if err := h.nodes.Remove(c.Request().Context(), c.caller, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
