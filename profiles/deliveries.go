package profiles

import (
	"context"
	"time"
)

// DeliveryState is the state of a delivery.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending   DeliveryState = "pending"   // to be sent, or sent again
	DeliveryDelivered DeliveryState = "delivered" // the receiver responded with 2xx
	DeliveryFailed    DeliveryState = "failed"    // no more attempts are made
)

// Notice is an event to send to a webhook. It is written in the transaction of the change
// that it reports, and becomes a [Delivery].
type Notice struct {
	ID    string // stays the same over retries
	URL   string
	Event string
	Body  []byte // the request body, byte for byte
	At    time.Time
	// Operator means that the URL is the daemon's, not the session's.
	Operator bool
}

// Delivery is a queued notice, or the record of one that was delivered or failed.
type Delivery struct {
	Notice
	SessionID string
	UserID    string
	State     DeliveryState
	Attempts  int
	Resent    int       // number of attempts before the last resend
	Since     time.Time // when sending began, or began again after a resend
	NextAt    time.Time // time of the next attempt, while pending
	LastAt    time.Time // time of the last attempt; zero if none was made
	LastError string    // of the last attempt; "" if it was delivered
	Sequence  int64     // order of writing; set by the catalogue
}

// Attempt is the result of one attempt to send a delivery.
type Attempt struct {
	State  DeliveryState // pending: try again at NextAt
	At     time.Time
	NextAt time.Time
	Error  string
}

// DeliveryFilter selects deliveries for a list, newest first.
type DeliveryFilter struct {
	UserID     string        // "" for every user
	Operator   bool          // include deliveries to the daemon's own URL
	State      DeliveryState // "" for every state
	Limit      int           // not positive: all
	StartAfter string        // exclusive cursor: an ID from an earlier page
}

// DeliveryStore keeps the webhook queue. An unknown ID is not_found.
type DeliveryStore interface {
	// DueDeliveries returns the oldest due delivery of each session and URL, oldest first.
	// beyond is later than any planned retry. A delivery whose time is after beyond got it
	// before the clock was set back, so it is due too.
	DueDeliveries(ctx context.Context, now, beyond time.Time, limit int) ([]Delivery, error)
	// NextDelivery returns when the next delivery becomes due that is not due yet, or the
	// zero time.
	NextDelivery(ctx context.Context, now time.Time) (time.Time, error)
	// FinishAttempt records an attempt of a pending delivery. d is the delivery as it was
	// when the attempt began. If it was resent or settled since, nothing changes.
	FinishAttempt(ctx context.Context, d Delivery, a Attempt) error
	Delivery(ctx context.Context, id string) (Delivery, error)
	// DeliveryPage lists deliveries, newest first. next is the cursor for StartAfter.
	DeliveryPage(ctx context.Context, f DeliveryFilter) (page []Delivery, next string, err error)
	// CountDeliveries counts the pending and the failed deliveries. States without
	// deliveries are left out.
	CountDeliveries(ctx context.Context) (map[DeliveryState]int, error)
	// Resend makes a delivery pending as of a time, whatever its state.
	Resend(ctx context.Context, id string, at time.Time) (Delivery, error)
	// ExpireDeliveries deletes those that were settled before a time.
	ExpireDeliveries(ctx context.Context, before time.Time) error
}
