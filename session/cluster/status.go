package cluster

// State is how a node's lease is.
type State string

// The states of a lease.
const (
	Held   State = "held"
	Lapsed State = "lapsed" // it could not be renewed in time; no other node has taken over yet
	Lost   State = "lost"   // another node has taken over; this one ends its sessions and joins again
)
