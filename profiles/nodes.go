package profiles

import (
	"context"
	"encoding/json"
	"time"
)

// LeaseTime is how long a node's lease is valid after it was taken or renewed.
const LeaseTime = 15 * time.Second

// Node is a daemon that shares its catalogue with others. It holds a lease. Another node may
// take over the sessions of one whose lease has ended.
type Node struct {
	ID     string
	Number int64  // of its lease, never given twice; 0: it has none
	URL    string // where other nodes reach it
	// Facts is a document of package session about what does not change while a node runs;
	// Status is one that each renewal replaces. Join reads a string "home" of Facts. It names
	// the data directory, which one process has at a time.
	Facts     json.RawMessage
	Status    json.RawMessage
	Draining  bool // it takes no new sessions
	StartedAt time.Time
	// Left is how long the lease is still valid by the database's clock; not positive: it has
	// ended.
	Left time.Duration
	// Clock is the database's time when it has returned the node.
	Clock time.Time
}

// Place is where a session lives.
type Place struct {
	NodeID string // "" for a session of a daemon that was no node
	Ended  bool   // NodeID is where it has lived last
	// Moving reports that it has ended there only so that another node continues it; see
	// [ReasonMoved].
	Moving bool
}

// NodeStore keeps the nodes of a catalogue in PostgreSQL. A catalogue in SQLite has no nodes:
// there, Join and TakeOver are config faults, and Nodes is empty.
type NodeStore interface {
	// Join takes a lease for a node, under a new number, and returns the node. From then on
	// every transaction of this catalogue that writes first locks the node's row and checks
	// the number. After another node has taken over, each of them is node_lost, until the
	// next Join. A lease that an earlier process of the same node holds ends if that has the
	// same home: then the process has ended. Otherwise the error is node_in_use until it is
	// no longer valid.
	Join(ctx context.Context, n Node) (Node, error)
	// Renew extends the lease and replaces the status. It returns the node as it is now, with
	// Draining as others have set it. node_lost: another node has taken over.
	Renew(ctx context.Context, status json.RawMessage) (Node, error)
	// Leave ends the lease. The node's sessions must have ended.
	Leave(ctx context.Context) error
	// Nodes lists all nodes, by ID.
	Nodes(ctx context.Context) ([]Node, error)
	// NodeOf returns where a session lives, or has lived last; session_not_found if there is
	// no such session.
	NodeOf(ctx context.Context, sessionID string) (Place, error)
	// Moving lists the sessions that were ended as moved, and that no node continues yet.
	Moving(ctx context.Context) ([]Session, error)
	// Drain sets whether a node takes new sessions; node_not_found if there is no such node.
	Drain(ctx context.Context, id string, draining bool) error
	// TakeOver ends the lease of another node, whose transactions fail from then on. It
	// returns false if that lease is valid, or has another number, or if the database has
	// not run for a whole LeaseTime yet: then the node had no time to renew it.
	TakeOver(ctx context.Context, id string, number int64) (bool, error)
	// RemoveNode removes a node without a lease and without sessions that have not ended;
	// node_in_use otherwise.
	RemoveNode(ctx context.Context, id string) error
	// Stranded lists the sessions that have not ended and whose node has no lease.
	Stranded(ctx context.Context) ([]Session, error)
	// EndStranded ends a session of Stranded and its open runs, and remembers what its node may
	// have of it; see [LeftSession]. It deletes the unfinished answers of that node. It returns
	// false, and does nothing, if the session has ended, or if its node has a lease now.
	EndStranded(ctx context.Context, e StrandedEnd) (bool, error)
}

// StrandedEnd says how a stranded session ends.
type StrandedEnd struct {
	End
	Restart bool // any node is to start the session again
	// Run returns the end of an open run. It is called inside the transaction and must not
	// block.
	Run  func(Run) RunEnd
	Keep EventBounds
}

// LeftSession is what a node may have on its disk of a session that was taken over from it.
type LeftSession struct {
	NodeID    string
	RunDir    string
	SessionID string
	EndedAt   time.Time // when the session was ended as crashed
	Sealed    []byte    // of the session's record; see [Session]
	Restart   bool      // any node is to start the session again
}

// LeftStore keeps what nodes may have of sessions that were taken over from them.
type LeftStore interface {
	// LeftSessions lists what a node may have.
	LeftSessions(ctx context.Context, nodeID string) ([]LeftSession, error)
	// AddLeft records what a node may have of a session that is about to be ended, because
	// this process of the node does not have it.
	AddLeft(ctx context.Context, l LeftSession) error
	// ForgetLeft removes the record of what a node had: it is saved, or does not exist. A
	// record of a session that is to be started again stays.
	ForgetLeft(ctx context.Context, nodeID, runDir string) error
	// Restarts lists the sessions that are to be started again.
	Restarts(ctx context.Context) ([]LeftSession, error)
	// SetRestart sets whether a session is to be started again. It returns false if that was
	// so before: another node was first.
	SetRestart(ctx context.Context, l LeftSession, restart bool) (bool, error)
}
