package placement

import (
	"context"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// Info describes a node to administrators.
type Info struct {
	ID  string `json:"node_id"`
	URL string `json:"url"`
	// State is "active", "draining", "late" (its lease was not renewed in time) or "stopped".
	State       string            `json:"state"`
	Draining    bool              `json:"draining"`
	Self        bool              `json:"self"` // the node that answers
	StartedAt   time.Time         `json:"started_at"`
	LeaseLeft   int64             `json:"lease_left_ms"`
	Version     string            `json:"version"`
	Engines     map[string]string `json:"engines"` // the version of each engine's Chrome
	MaxSessions int               `json:"max_sessions"`
	Free        int               `json:"free"` // places
	Live        int               `json:"live"`
	Waiting     int               `json:"waiting"` // creates that wait for a place
	Staying     []Staying         `json:"staying"` // sessions that it could not move when it was drained
	// Answers reports whether the node has answered the node that answers. Who lists the nodes to a
	// client sets it; nil: it was not asked.
	Answers *bool `json:"answers"`
}

// Admin shows and changes nodes for callers with the right admin.
type Admin struct {
	store profiles.NodeStore
	self  string
}

// NewAdmin makes an Admin. self is the ID of this node; "": this daemon is none.
func NewAdmin(store profiles.NodeStore, self string) *Admin { return &Admin{store, self} }

// Nodes lists all nodes by ID. A daemon that shares no catalogue has none.
func (a *Admin) Nodes(ctx context.Context, c access.Caller) ([]Info, error) {
	if err := c.Require(access.Administer); err != nil {
		return nil, err
	}
	records, err := a.store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]Info, 0, len(records))
	for _, r := range records {
		list = append(list, a.info(nodeOf(r)))
	}
	return list, nil
}

// Drain sets whether a node takes new sessions.
func (a *Admin) Drain(ctx context.Context, c access.Caller, id string, draining bool) error {
	if err := c.Require(access.Administer); err != nil {
		return err
	}
	return a.store.Drain(ctx, id, draining)
}

// Remove removes a node that has stopped; node_in_use if it has a lease or live sessions.
func (a *Admin) Remove(ctx context.Context, c access.Caller, id string) error {
	if err := c.Require(access.Administer); err != nil {
		return err
	}
	return a.store.RemoveNode(ctx, id)
}

func (a *Admin) info(n Node) Info {
	state := "active"
	switch {
	case n.Number == 0:
		state = "stopped"
	case n.Left <= 0:
		state = "late"
	case n.Draining:
		state = "draining"
	}
	engines := n.Facts.Engines
	if engines == nil {
		engines = map[string]string{}
	}
	staying := n.Status.Staying
	if staying == nil || !n.Draining {
		staying = []Staying{}
	}
	return Info{ID: n.ID, Staying: staying, URL: n.URL, State: state, Draining: n.Draining, Self: n.ID == a.self, StartedAt: n.StartedAt.UTC(),
		LeaseLeft: max(n.Left, 0).Milliseconds(), Version: n.Facts.Version, Engines: engines, MaxSessions: n.Facts.Sessions,
		Free: n.Status.Free, Live: n.Status.Live, Waiting: n.Status.Waiting}
}
