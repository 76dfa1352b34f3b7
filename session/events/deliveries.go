package events

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// KeepDeliveries is how long the record of a delivery is kept after it was delivered or
// has failed.
const KeepDeliveries = 7 * 24 * time.Hour

// Delivery is a webhook delivery, sent or pending, as callers see it.
type Delivery struct {
	ID        string // the same for all attempts
	SessionID string
	UserID    string
	URL       string
	Event     string
	State     string // pending | delivered | failed
	Attempts  int
	LastError string // of the last attempt; "" if it was delivered
	At        time.Time
	LastAt    time.Time // of the last attempt; zero if there was none
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

// Deliveries lists and resends webhook deliveries. Its methods are safe for concurrent
// use.
type Deliveries struct {
	store DeliveryStore
	wake  func() // wakes the sender
	now   func() time.Time
}

// NewDeliveries makes Deliveries over a store. It calls wake to wake the sender.
func NewDeliveries(store DeliveryStore, wake func(), now func() time.Time) *Deliveries {
	return &Deliveries{store, wake, now}
}

// Deliveries returns a page of the deliveries of the caller's sessions in a state ("" for
// all), newest first. Only admins see deliveries to the daemon's own URL.
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

// Resend sends a delivery once more under its old ID, whatever its state.
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
