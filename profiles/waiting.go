package profiles

import (
	"context"
	"time"
)

// WaitingCreate is a create that waits until a node has a place for it, or that got its turn
// while other creates of its user wait.
type WaitingCreate struct {
	ID            string
	UserID, KeyID string // who takes turns
	// Engine ("": any), Chrome and Restores say what the create needs of its node: the engine, a
	// Chrome at least as new as that which wrote the snapshot, and an identity that opens it.
	Engine, Chrome string
	Restores       bool
	// MostOfUser and MostOfKey are how many sessions the user and the key may have; nil: there is
	// no such quota.
	MostOfUser, MostOfKey *int64
	Since                 time.Time // by the database's clock
	Turn                  int64     // 0: it waits; otherwise the number of its turn, from 1

	// OfUser and OfKey are how many sessions the user and the key have on all nodes; 0 if there
	// is no quota. Paused says that a create that waits lets others go first. Fresh says that a
	// create had its turn a short time ago, so that nodes may not have reported yet that a place is
	// taken. Only [WaitingStore.Waiting] sets these.
	OfUser, OfKey int64
	Paused, Fresh bool
}

// WaitingStore keeps the creates of all nodes that wait for a place. Only a node may call it.
type WaitingStore interface {
	// BeginWaiting records that a create waits on this node. It counts until its node loses
	// the lease. A zero Since means now; BeginWaiting returns the time that it has recorded. For
	// the time pause, the create is Paused. A create that got its turn and no place calls it
	// again.
	BeginWaiting(ctx context.Context, w WaitingCreate, pause time.Duration) (since time.Time, err error)
	// TakeTurn records that a create of this node gets its turn, and no longer waits. For a time
	// it is Fresh. It returns false if the create does not wait.
	TakeTurn(ctx context.Context, id string, fresh time.Duration) (bool, error)
	// EndWaiting removes a create of this node.
	EndWaiting(ctx context.Context, id string) error
	// Waiting lists the creates that wait, and those that had a turn and matter for the next
	// one: the last of each key whose user waits, and the fresh ones. The first to come is the
	// first.
	Waiting(ctx context.Context) ([]WaitingCreate, error)
}
