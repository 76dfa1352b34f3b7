package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// Keys manages API keys, and the tickets of GET /v1/connect.
type Keys interface {
	// Authenticate returns the caller whose key the secret is; else unauthorized.
	Authenticate(ctx context.Context, secret string) (access.Caller, error)
	// NewTicket makes a ticket for one /v1/connect; RedeemTicket uses it up.
	NewTicket(ctx context.Context, c access.Caller) (ticket string, expires time.Time, err error)
	RedeemTicket(ctx context.Context, ticket string) (access.Caller, error)
	// CreateKey also returns the secret, which is stored nowhere.
	CreateKey(ctx context.Context, c access.Caller, name, userID string, allUsers bool, rights []access.Right) (k access.Key, secret string, err error)
	Keys(ctx context.Context, c access.Caller) ([]access.Key, error)
	DeleteKey(ctx context.Context, c access.Caller, id string) error
}

var _ Keys = (*access.Keys)(nil)

// keyHandler manages API keys and makes tickets.
type keyHandler struct {
	keys        Keys
	bodies      *bodyDecoder
	idempotency *idempotency
	urls        origins
}

// newKeyAnswer includes the secret, which is null in the answer to a repeat.
type newKeyAnswer struct {
	access.Key
	Secret *string `json:"secret"`
}

// me answers with the key of the call.
func me(c *call) error {
	return c.JSON(http.StatusOK, map[string]any{
		"key_id": c.caller.KeyID, "user_id": c.caller.UserID,
		"all_users": c.caller.AllUsers, "rights": c.caller.Rights,
	})
}

func (h *keyHandler) list(c *call) error {
	keys, err := h.keys.Keys(c.Request().Context(), c.caller)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"keys": keys})
}

type keyBody struct {
	Name     string         `json:"name"`
	UserID   string         `json:"user_id"`
	AllUsers bool           `json:"all_users"`
	Rights   []access.Right `json:"rights"`
}

// rightNames returns the rights that a key may have.
func rightNames() []string {
	var names []string
	for _, r := range access.Rights() {
		names = append(names, string(r))
	}
	return names
}

func (b *keyBody) check() error {
	if b.Name == "" {
		return invalid("name", "is required")
	}
	if len(b.Rights) == 0 {
		return invalid("rights", "must not be empty")
	}
	for i, r := range b.Rights {
		field := fmt.Sprintf("rights[%d]", i)
		if err := oneOf(field, string(r), rightNames()...); err != nil {
			return err
		}
		if slices.Contains(b.Rights[:i], r) {
			return invalid(field, "is given twice")
		}
	}
	return firstOf(atMost("name", b.Name, 128), isUserID("user_id", b.UserID))
}

func (h *keyHandler) create(c *call) error {
	body := keyBody{UserID: c.caller.UserID, Rights: []access.Right{access.RightUse}}
	if _, err := h.bodies.decode(c, &body); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	return h.idempotency.once(c, h.idempotency.hashOf(body), creation{
		make: func() (any, func() error, error) {
			key, secret, err := h.keys.CreateKey(c.Request().Context(), c.caller, body.Name, body.UserID, body.AllUsers, body.Rights)
			if err != nil {
				return nil, nil, err
			}
			return key, func() error { return c.JSON(http.StatusCreated, newKeyAnswer{key, &secret}) }, nil
		},
		replay: func(data []byte) error {
			var made access.Key
			if err := json.Unmarshal(data, &made); err != nil {
				return fault.Wrap(err, fault.Internal, "api.replay", "")
			}
			return c.JSON(http.StatusCreated, newKeyAnswer{made, nil})
		},
	})
}

func (h *keyHandler) delete(c *call) error {
	id, err := c.id("key_id", fault.KeyNotFound)
	if err != nil {
		return err
	}
	if err := h.keys.DeleteKey(c.Request().Context(), c.caller, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// createTicket makes a one-use ticket. A repeat gets a new ticket: tickets are not stored
// in plain text, and an unused one just expires.
func (h *keyHandler) createTicket(c *call) error {
	var body none
	if _, err := h.bodies.decode(c, &body); err != nil {
		return err
	}
	fresh := func() error {
		ticket, expires, err := h.keys.NewTicket(c.Request().Context(), c.caller)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusCreated, map[string]any{
			"ticket": ticket, "expires_at": expires.UTC(), "connect_url": h.urls.of(c.Request()).connect(ticket),
		})
	}
	return h.idempotency.once(c, h.idempotency.hashOf(body), creation{
		make:   func() (any, func() error, error) { return none{}, fresh, nil },
		replay: func([]byte) error { return fresh() },
	})
}
