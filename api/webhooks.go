package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/events"
)

// Deliveries lists webhook deliveries and sends them again.
type Deliveries interface {
	Deliveries(ctx context.Context, c access.Caller, state string, limit int, startAfter string) (page []events.Delivery, next string, err error)
	Resend(ctx context.Context, c access.Caller, id string) (events.Delivery, error)
}

var _ Deliveries = (*events.Deliveries)(nil)

// deliveryHandler answers /v1/webhooks/deliveries.
type deliveryHandler struct{ deliveries Deliveries }

// maxHookURL limits the length of a webhook's URL, in bytes.
const maxHookURL = 2000

// isHookURL checks the URL of a webhook. The address that it leads to is checked at each
// delivery.
func isHookURL(name, value string) error {
	if value == "" {
		return nil
	}
	if err := atMost(name, value, maxHookURL); err != nil {
		return err
	}
	u, err := url.Parse(value)
	if err == nil && u.Port() != "" {
		_, err = strconv.ParseUint(u.Port(), 10, 16)
	}
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return invalid(name, "must be an http or https address without a user name")
	}
	return nil
}

// deliveryAnswer is a delivery on the wire.
type deliveryAnswer struct {
	ID        string     `json:"id"`
	SessionID string     `json:"session_id"`
	UserID    string     `json:"user_id"`
	URL       string     `json:"url"`
	Event     string     `json:"event"`
	State     string     `json:"state"`
	Attempts  int        `json:"attempts"`
	LastError *string    `json:"last_error"`
	CreatedAt time.Time  `json:"created_at"`
	LastAt    *time.Time `json:"last_attempt_at"`
	NextAt    *time.Time `json:"next_attempt_at"`
}

func deliveryOf(d events.Delivery) deliveryAnswer {
	return deliveryAnswer{ID: d.ID, SessionID: d.SessionID, UserID: d.UserID, URL: d.URL, Event: d.Event, State: d.State, Attempts: d.Attempts,
		LastError: answer.OrNull(d.LastError), CreatedAt: d.At.UTC(), LastAt: answer.TimeOrNull(d.LastAt), NextAt: answer.TimeOrNull(d.NextAt)}
}

func (h *deliveryHandler) list(c *call) error {
	q := struct {
		State      string `json:"state"`
		Limit      int64  `json:"limit"`
		StartAfter string `json:"start_after"`
	}{Limit: defaultPage}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := firstOf(
		oneOf("state", q.State, "pending", "delivered", "failed"),
		within("limit", q.Limit, 1, largestPage),
		isID("start_after", q.StartAfter),
	); err != nil {
		return err
	}
	c.audit.listing(c, "")
	page, next, err := h.deliveries.Deliveries(c.Request().Context(), c.caller, q.State, int(q.Limit), q.StartAfter)
	if err != nil {
		return err
	}
	answers := make([]deliveryAnswer, 0, len(page))
	for _, d := range page {
		answers = append(answers, deliveryOf(d))
	}
	if next != "" {
		c.Response().Header().Set("X-Next-Token", next)
	}
	return c.JSON(http.StatusOK, answers)
}

func (h *deliveryHandler) resend(c *call) error {
	id, err := c.id("delivery_id", fault.NotFound)
	if err != nil {
		return err
	}
	d, err := h.deliveries.Resend(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, deliveryOf(d))
}
