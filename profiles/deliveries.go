package profiles

import (
	"context"
	"time"
)

// DeliveryState is how far a delivery is.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending   DeliveryState = "pending"   // it is to be sent, or sent again
	DeliveryDelivered DeliveryState = "delivered" // the receiver said 2xx
	DeliveryFailed    DeliveryState = "failed"    // given up
)

// Notice is something that a webhook is to be told. It is written in the
// transaction of what it tells of, and becomes a [Delivery].
type Notice struct {
	ID    string // stays the same over retries
	URL   string
	Event string
	Body  []byte // what is sent, byte for byte
	At    time.Time
	// Operator: the URL is the daemon's, not the session's.
	Operator bool
}

// Delivery is a notice on its way, or the record of one.
type Delivery struct {
	Notice
	SessionID string
	UserID    string
	State     DeliveryState
	Attempts  int
	Resent    int       // how many of the attempts were made before it was last resent
	Since     time.Time // when sending began, or began again with a resend
	NextAt    time.Time // of the next attempt, while it is pending
	LastAt    time.Time // of the last attempt; zero: none was made
	LastError string    // of the last attempt; "" where it was delivered
	Sequence  int64     // order of writing, given by the catalogue
}

// Attempt is what became of one attempt to send a delivery.
type Attempt struct {
	State  DeliveryState // pending: again at NextAt
	At     time.Time
	NextAt time.Time
	Error  string
}

// DeliveryFilter narrows a listing, newest first.
type DeliveryFilter struct {
	UserID     string        // "" for every user
	Operator   bool          // those to the daemon's own URL too
	State      DeliveryState // "" for every state
	Limit      int           // not positive: all
	StartAfter string        // exclusive cursor: an ID of an earlier page
}

// DeliveryStore keeps the queue of webhooks. An ID that does not exist is not_found.
type DeliveryStore interface {
	// DueDeliveries gives, of those whose time has come, the oldest of each session
	// and URL, oldest first. One whose time is after beyond, later than anything is
	// put off to, had it from a clock that was set back since, and is due too.
	DueDeliveries(ctx context.Context, now, beyond time.Time, limit int) ([]Delivery, error)
	// NextDelivery tells when the next one is due that is not due yet; zero: none is.
	NextDelivery(ctx context.Context, now time.Time) (time.Time, error)
	// FinishAttempt records an attempt of a pending delivery, which is given as it
	// was when that began; one that was resent or settled meanwhile stays as it is.
	FinishAttempt(ctx context.Context, d Delivery, a Attempt) error
	Delivery(ctx context.Context, id string) (Delivery, error)
	// DeliveryPage lists newest first; next is the cursor for StartAfter.
	DeliveryPage(ctx context.Context, f DeliveryFilter) (page []Delivery, next string, err error)
	// CountDeliveries counts those that are pending and those that were given up; a
	// state without any is not in it.
	CountDeliveries(ctx context.Context) (map[DeliveryState]int, error)
	// Resend makes a delivery pending as of a time, whatever became of it.
	Resend(ctx context.Context, id string, at time.Time) (Delivery, error)
	// ExpireDeliveries forgets those that were settled before.
	ExpireDeliveries(ctx context.Context, before time.Time) error
}
