package events

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// KeepDeliveries is how long the record of a delivery stays once it is settled.
const KeepDeliveries = 7 * 24 * time.Hour

// Delivery is a webhook that was sent, or is to be, as callers see it.
type Delivery struct {
	ID        string // stays the same over retries
	SessionID string
	UserID    string
	URL       string
	Event     string
	State     string // pending | delivered | failed
	Attempts  int
	LastError string // of the last attempt; "" where it was delivered
	At        time.Time
	LastAt    time.Time // of the last attempt; zero: none was made
	NextAt    time.Time // of the next attempt; zero unless it is pending
}

func deliveryOf(d profiles.Delivery) Delivery {
	answer := Delivery{ID: d.ID, SessionID: d.SessionID, UserID: d.UserID, URL: d.URL, Event: d.Event, State: string(d.State),
		Attempts: d.Attempts, LastError: d.LastError, At: d.At.UTC(), LastAt: d.LastAt}
	if d.State == profiles.DeliveryPending {
		answer.NextAt = d.NextAt
	}
	return answer
}

// DeliveryStore is what Deliveries need of the catalogue; see [profiles.DeliveryStore].
type DeliveryStore interface {
	DeliveryPage(ctx context.Context, f profiles.DeliveryFilter) ([]profiles.Delivery, string, error)
	Delivery(ctx context.Context, id string) (profiles.Delivery, error)
	Resend(ctx context.Context, id string, now time.Time) (profiles.Delivery, error)
}

// Deliveries are the webhooks that were sent, or are to be. Its methods are safe for
// concurrent use.
type Deliveries struct {
	store DeliveryStore
	wake  func() // has the sender look
	now   func() time.Time
}

// NewDeliveries gives the deliveries of a store. wake has the sender look at it.
func NewDeliveries(store DeliveryStore, wake func(), now func() time.Time) *Deliveries {
	return &Deliveries{store, wake, now}
}

// Deliveries gives a page, newest first: those in a state, "" for all, of the
// caller's sessions. What went to the daemon's own URL is for admins alone.
func (d *Deliveries) Deliveries(ctx context.Context, c access.Caller, state string, limit int, startAfter string) (page []Delivery, next string, err error) {
	if err := c.Require(access.Look); err != nil {
		return nil, "", err
	}
	f := profiles.DeliveryFilter{UserID: c.UserID, Operator: c.May(access.Administer), State: profiles.DeliveryState(state), Limit: limit, StartAfter: startAfter}
	if c.ForEveryUser() {
		f.UserID = ""
	}
	records, next, err := d.store.DeliveryPage(ctx, f)
	page = make([]Delivery, 0, len(records))
	for _, rec := range records {
		page = append(page, deliveryOf(rec))
	}
	return page, next, err
}

// Resend has a delivery sent once more, whatever became of it, under its old ID.
func (d *Deliveries) Resend(ctx context.Context, c access.Caller, id string) (Delivery, error) {
	if err := c.Require(access.Manage); err != nil {
		return Delivery{}, err
	}
	rec, err := d.store.Delivery(ctx, id)
	if err == nil && (!c.MayActFor(rec.UserID) || rec.Operator && !c.May(access.Administer)) {
		err = fault.New(fault.NotFound, "events.resend", "there is no delivery %s", id)
	}
	if err != nil {
		return Delivery{}, err
	}
	rec, err = d.store.Resend(ctx, id, d.now().UTC())
	d.wake()
	return deliveryOf(rec), err
}
