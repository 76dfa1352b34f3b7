package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/quota"
)

// Keys manages API keys, and the tickets of GET /v1/connect.
type Keys interface {
	// Authenticate returns the caller whose key the secret is; else unauthorized. It is
	// forbidden if the key may not be used from the address.
	Authenticate(ctx context.Context, secret string, from netip.Addr) (access.Caller, error)
	// NewTicket makes a ticket for one /v1/connect; RedeemTicket uses it up.
	NewTicket(ctx context.Context, c access.Caller) (ticket string, expires time.Time, err error)
	RedeemTicket(ctx context.Context, ticket string) (access.Caller, error)
	// CreateKey also returns the secret, which is stored nowhere.
	CreateKey(ctx context.Context, c access.Caller, o access.KeyOptions) (k access.Key, secret string, err error)
	// RotateKey also returns the new secret.
	RotateKey(ctx context.Context, c access.Caller, id string, overlap time.Duration) (k access.Key, secret string, err error)
	Keys(ctx context.Context, c access.Caller) ([]access.Key, error)
	// ChangeQuotas applies change in a transaction. An error of change is returned
	// unchanged.
	ChangeQuotas(ctx context.Context, c access.Caller, id string, change func(quota.Quotas) (quota.Quotas, error)) (access.Key, error)
	DeleteKey(ctx context.Context, c access.Caller, id string) error
}

var _ Keys = (*access.Keys)(nil)

// maxOverlap is the longest overlap of a rotation, in seconds.
const maxOverlap = 30 * 24 * 60 * 60

// keyHandler manages API keys and makes tickets.
type keyHandler struct {
	keys        Keys
	use         KeyUse
	bodies      *bodyDecoder
	idempotency *idempotency
	urls        origins
}

// newKeyAnswer includes the secret, which is null in the answer to a repeat.
type newKeyAnswer struct {
	access.Key
	Secret *string `json:"secret"`
}

// usedKey is a key with how much of its quotas it uses.
type usedKey struct {
	access.Key
	Use map[quota.Name]quota.Used `json:"use"`
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
	list := make([]usedKey, 0, len(keys))
	for _, k := range keys {
		use, err := h.use.KeyUse(c.Request().Context(), k)
		if err != nil {
			return err
		}
		list = append(list, usedKey{k, use})
	}
	return c.JSON(http.StatusOK, map[string]any{"keys": list})
}

type keyBody struct {
	Name     string         `json:"name"`
	UserID   string         `json:"user_id"`
	AllUsers bool           `json:"all_users"`
	Rights   []access.Right `json:"rights"`
	Expires  string         `json:"expires_at"`
	Networks []string       `json:"networks"`
	Quotas   quota.Quotas   `json:"quotas"`
}

func (b *keyBody) options() access.KeyOptions {
	o := access.KeyOptions{Name: b.Name, UserID: b.UserID, AllUsers: b.AllUsers, Rights: b.Rights, Networks: networks(b.Networks), Quotas: b.Quotas}
	if at, err := time.Parse(time.RFC3339, b.Expires); err == nil { // check has parsed it; "" is never
		o.ExpiresAt = &at
	}
	return o
}

// granted describes the key for the audit log.
func (b *keyBody) granted() string {
	rights := fmt.Sprint(b.Rights)
	if b.AllUsers {
		rights += " all_users"
	}
	return rights
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
	return firstOf(atMost("name", b.Name, 128), isUserID("user_id", b.UserID), isTime("expires_at", b.Expires), areNetworks("networks", b.Networks), checkKeyQuotas(b.Quotas))
}

// checkKeyQuotas is checkQuotas for a key.
func checkKeyQuotas(q quota.Quotas) error {
	if q.Standbys != nil {
		return fault.New(fault.Unsupported, "api.key", "quotas.standbys: standbys belong to users, so a key has no such quota; set it in the user's settings")
	}
	return checkQuotas(q)
}

func isTime(field, value string) error {
	at, err := time.Parse(time.RFC3339, value)
	if value != "" && (err != nil || at.Year() < 2000 || at.Year() > 2200) {
		return invalid(field, "must be a time from 2000 to 2200, such as 2027-01-31T12:00:00Z (RFC 3339)")
	}
	return nil
}

func (h *keyHandler) create(c *call) error {
	body := keyBody{UserID: c.caller.UserID, Rights: []access.Right{access.RightUse}}
	if _, err := h.bodies.decode(c, &body); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	c.audit.UserID, c.audit.Detail = body.UserID, body.granted()
	return h.idempotency.once(c, h.idempotency.hashOf(body), h.creation(c, http.StatusCreated, func() (access.Key, string, error) {
		return h.keys.CreateKey(c.Request().Context(), c.caller, body.options())
	}))
}

// creation makes a secret once. The answer to a repeat has the key without its secret.
func (h *keyHandler) creation(c *call, status int, secret func() (access.Key, string, error)) creation {
	return creation{
		make: func() (any, func() error, error) {
			key, made, err := secret()
			if err != nil {
				return nil, nil, err
			}
			c.audit.Object, c.audit.UserID = key.ID, key.UserID
			return key, func() error { return c.JSON(status, newKeyAnswer{key, &made}) }, nil
		},
		replay: func(data []byte) error {
			var made access.Key
			if err := json.Unmarshal(data, &made); err != nil {
				return fault.Wrap(err, fault.Internal, "api.replay", "")
			}
			return c.JSON(status, newKeyAnswer{made, nil})
		},
	}
}

// rotation is the body of POST /v1/keys/{key_id}/rotate.
type rotation struct {
	Overlap int64 `json:"overlap_seconds"`
}

// rotate gives a key a new secret. A repeat gets the first answer without the secret.
func (h *keyHandler) rotate(c *call) error {
	id, err := c.id("key_id", fault.KeyNotFound)
	if err != nil {
		return err
	}
	var body rotation
	if _, err := h.bodies.decode(c, &body); err != nil {
		return err
	}
	if err := withinSeconds("overlap_seconds", body.Overlap, 0, maxOverlap); err != nil {
		return err
	}
	return h.idempotency.once(c, h.idempotency.hashOf(struct {
		ID string
		rotation
	}{id, body}), h.creation(c, http.StatusOK, func() (access.Key, string, error) {
		return h.keys.RotateKey(c.Request().Context(), c.caller, id, seconds(body.Overlap))
	}))
}

// keyPatch is the document that a PATCH of a key changes.
type keyPatch struct {
	Quotas *quota.Quotas `json:"quotas"`
}

// changedQuotas returns the names of the quotas in a patch of a key, for the audit log; "quotas"
// if it removes all.
func changedQuotas(changes object) string {
	var names []string
	for _, change := range changes {
		quotas, _ := change.value.(object)
		for _, q := range quotas {
			names = append(names, q.name)
		}
		if quotas == nil {
			names = append(names, change.name)
		}
	}
	return strings.Join(names, " ")
}

// patch changes the quotas of a key.
func (h *keyHandler) patch(c *call) error {
	changes, err := h.bodies.patch(c, &keyPatch{})
	if err != nil {
		return err
	}
	id, err := c.id("key_id", fault.KeyNotFound)
	if err != nil {
		return err
	}
	c.audit.Detail = changedQuotas(changes)
	key, err := h.keys.ChangeQuotas(c.Request().Context(), c.caller, id, func(was quota.Quotas) (quota.Quotas, error) {
		var now keyPatch
		if err := applyPatch(c.Request().Context(), keyPatch{&was}, changes, &now); err != nil || now.Quotas == nil {
			return quota.Quotas{}, err
		}
		return *now.Quotas, checkKeyQuotas(*now.Quotas)
	})
	if err != nil {
		return err
	}
	c.audit.UserID = key.UserID
	use, err := h.use.KeyUse(c.Request().Context(), key)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, usedKey{key, use})
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
