package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Node is a daemon of a cluster.
type Node struct {
	ID          string            `json:"node_id"`
	URL         string            `json:"url"`   // where other nodes reach it
	State       string            `json:"state"` // active, draining, late or stopped
	Draining    bool              `json:"draining"`
	Self        bool              `json:"self"` // it is the node that has answered
	StartedAt   time.Time         `json:"started_at"`
	LeaseLeft   int64             `json:"lease_left_ms"`
	Version     string            `json:"version"`
	Engines     map[string]string `json:"engines"` // the version of each engine's Chrome
	MaxSessions int               `json:"max_sessions"`
	Free        int               `json:"free"` // places for sessions
	Live        int               `json:"live"`
	Waiting     int               `json:"waiting"` // creates that came to it and wait for a place
	Staying     []StayingSession  `json:"staying"` // what it could not move since it is drained
	// Answers reports whether the node has answered a call of the node that lists it; nil: it was
	// not asked, because it is that node or has no lease.
	Answers *bool `json:"answers"`
}

// StayingSession is a live session that a node which is drained could not move.
type StayingSession struct {
	SessionID string `json:"session_id"`
	Reason    string `json:"reason"` // for people
}

// Nodes returns the nodes of a cluster, by ID; a daemon that shares no catalogue has none. Like
// the other methods about nodes, it needs the right admin.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	var list struct {
		Nodes []Node `json:"nodes"`
	}
	err := c.Call(ctx, http.MethodGet, "/v1/nodes", nil, &list)
	return list.Nodes, err
}

// DrainNode sets whether a node takes no new sessions, and moves its live ones to others.
func (c *Client) DrainNode(ctx context.Context, id string, draining bool) error {
	method := http.MethodPost
	if !draining {
		method = http.MethodDelete
	}
	return c.Call(ctx, method, "/v1/nodes/"+url.PathEscape(id)+"/drain", nil, nil)
}

// RemoveNode removes a node that has stopped and has no live sessions.
func (c *Client) RemoveNode(ctx context.Context, id string) error {
	return c.Call(ctx, http.MethodDelete, "/v1/nodes/"+url.PathEscape(id), nil, nil)
}
