// Package placement knows the nodes that share a catalogue, finds the node on which a session
// lives, and decides on which node a new one is quickest. It keeps only short caches: the
// catalogue has the truth.
package placement

import (
	"context"
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// Facts are what does not change while a node runs. A node gives them to the catalogue when it
// joins ([profiles.Node.Facts]).
type Facts struct {
	Version  string            `json:"version"`  // of Stasis
	Engines  map[string]string `json:"engines"`  // the version of each engine's Chrome
	Sessions int               `json:"sessions"` // places in all
	// WriteOnly reports that it has no identity: it can save and not restore.
	WriteOnly bool `json:"write_only,omitempty"`
	// Home names the data directory and the run of the machine, so that it differs if the ID is
	// given twice; see [profiles.Node].
	Home string `json:"home,omitempty"`
	// URLMAC authenticates the node's ID and URL with a secret that all nodes share; see package
	// forward.
	URLMAC string `json:"url_mac,omitempty"`
	// Fingerprints are those of the secrets that all nodes share: a document of package claims.
	Fingerprints json.RawMessage `json:"fingerprints,omitempty"`
}

// Status is what a node says of itself at each renewal of its lease ([profiles.Node.Status]).
type Status struct {
	Free    int `json:"free"`    // places for sessions, of any engine
	Waiting int `json:"waiting"` // creates that came to it and wait for a place on any node
	Live    int `json:"live"`
	// Rescuing is how many sessions of a former process are being saved.
	Rescuing int            `json:"rescuing"`
	Spares   map[string]int `json:"spares"` // empty Chromes that wait, by engine
	// Parked and Standbys are the snapshots whose Chromes the node keeps: frozen ones, and
	// those that wait with the environment loaded.
	Parked   []string `json:"parked_snapshots,omitempty"`
	Standbys []string `json:"standby_snapshots,omitempty"`
	// Staying are sessions that a node which is drained could not move, at most [MaxStaying].
	Staying []Staying `json:"staying,omitempty"`
}

// MaxStaying bounds how many sessions a status names that could not be moved.
const MaxStaying = 100

// Staying is a session that a node which is drained could not move.
type Staying struct {
	SessionID string `json:"session_id"`
	Reason    string `json:"reason"` // for people
}

// Node is a node as the catalogue describes it.
type Node struct {
	ID        string
	URL       string // where other nodes reach it
	Number    int64  // of its lease; 0: it has none
	Left      time.Duration
	Draining  bool
	StartedAt time.Time
	Facts     Facts
	Status    Status
}

// Leased reports whether the node's lease is valid.
func (n Node) Leased() bool { return n.Number != 0 && n.Left > 0 }

// Place is where a session lives.
type Place = profiles.Place

// Catalogue is what placement reads. See [profiles.NodeStore] and the stores of sessions and
// snapshots.
type Catalogue interface {
	Nodes(ctx context.Context) ([]profiles.Node, error)
	// NodeOf returns where a session lives; session_not_found if there is no such session.
	NodeOf(ctx context.Context, sessionID string) (profiles.Place, error)
}

// nodeOf converts a node of the catalogue. A document that cannot be read, such as one of a
// newer version, counts as empty: that node gets no sessions placed.
func nodeOf(n profiles.Node) Node {
	one := Node{ID: n.ID, URL: n.URL, Number: n.Number, Left: n.Left, Draining: n.Draining, StartedAt: n.StartedAt}
	if json.Unmarshal(n.Facts, &one.Facts) != nil {
		one.Facts = Facts{}
	}
	if json.Unmarshal(n.Status, &one.Status) != nil {
		one.Status = Status{}
	}
	return one
}
