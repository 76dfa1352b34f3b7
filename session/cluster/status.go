package cluster

// Facts is what other nodes know of a node. It does not change while the node runs.
type Facts struct {
	Version  string            `json:"version"`  // of Stasis
	Engines  map[string]string `json:"engines"`  // the version of each engine's Chrome
	Sessions int               `json:"sessions"` // that may live at once
}

// Status is what other nodes know of a node now. Each renewal of its lease replaces it.
type Status struct {
	Free     int            `json:"free"`    // places for sessions
	Waiting  int            `json:"waiting"` // creates that wait for a place
	Live     int            `json:"live"`
	Creating int            `json:"creating"`
	Parked   int            `json:"parked"`
	Standbys int            `json:"standbys"`
	Rescuing int            `json:"rescuing"`
	Spares   map[string]int `json:"spares"` // by engine
}

// State is how a node's lease is.
type State string

// The states of a lease.
const (
	Held   State = "held"
	Lapsed State = "lapsed" // it could not be renewed in time; no other node has taken over yet
	Lost   State = "lost"   // another node has taken over; this one ends its sessions and joins again
)
