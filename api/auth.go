package api

import (
	"context"
	"net/netip"
	"strings"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// authorizer authenticates a call and sets its caller.
type authorizer func(c *call) error

func noAuth(*call) error { return nil }

// SessionTickets checks the tickets in the URLs of sessions.
type SessionTickets interface {
	// AuthorizeTicket returns the caller that a ticket stands for if it is valid for that
	// session and purpose; else unauthorized.
	AuthorizeTicket(ctx context.Context, ticket, sessionID string, p access.Purpose) (access.Caller, error)
}

var _ SessionTickets = (*access.TicketHolders)(nil)

// authenticator authenticates clients by their keys and tickets, and limits how fast these
// can be guessed.
type authenticator struct {
	keys     Keys
	tickets  SessionTickets
	urls     origins
	attempts *attempts
	cluster  *Cluster // nil: the daemon is no node
}

// byKey authenticates with the API key in "Authorization: Bearer KEY" or "x-api-key".
func (a *authenticator) byKey(c *call) error {
	in, secret := "x-api-key", c.Request().Header.Get("x-api-key")
	if header := c.Request().Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "bearer") {
			return fault.New(fault.Unauthorized, "api.auth", "Authorization: must be Bearer KEY, where KEY is an API key")
		}
		in, secret = "Authorization", strings.TrimSpace(token)
	}
	if secret == "" {
		return fault.New(fault.Unauthorized, "api.auth", "no API key; send one in the header Authorization: Bearer KEY, or x-api-key: KEY")
	}
	from := a.addressOf(c)
	leave, err := a.attempts.begin(from, secret)
	if err != nil {
		return err
	}
	defer leave()
	c.caller, err = a.keys.Authenticate(c.Request().Context(), secret, a.urls.address(c.Request()))
	switch {
	case err == nil:
		a.attempts.recordSuccess(from, secret)
	case fault.Is(err, fault.Unauthorized):
		err = fault.New(fault.Unauthorized, "api.auth", "%s: %s", in, fault.MessageOf(err))
	}
	return a.attempts.countFailure(from, err)
}

// addressOf returns the address whose attempts a client's failures cost.
func (a *authenticator) addressOf(c *call) netip.Prefix { return a.urls.client(c.Request()) }

// bySessionTicket authenticates with the ticket of a session's URL, for one of the purposes.
// Without a ticket it authenticates with a key.
func (a *authenticator) bySessionTicket(purposes ...access.Purpose) authorizer {
	return func(c *call) error {
		ticket := c.QueryParam("ticket")
		if ticket == "" {
			return a.byKey(c)
		}
		c.byTicket = true
		id, err := c.sessionID()
		if err != nil {
			return err
		}
		for _, p := range purposes {
			if c.caller, err = a.tickets.AuthorizeTicket(c.Request().Context(), ticket, id, p); !fault.Is(err, fault.Unauthorized) {
				break
			}
		}
		return a.countTicketFailure(c, ticket, err)
	}
}

// countTicketFailure is countFailure for a ticket. A ticket in the form that Stasis makes costs no
// attempt: a page that is left open keeps sending an expired one.
func (a *authenticator) countTicketFailure(c *call, ticket string, err error) error {
	if access.IsTicket(ticket) {
		return err
	}
	return a.attempts.countFailure(a.addressOf(c), err)
}

// byConnectTicket uses up a one-use ticket. Without a ticket it authenticates with a key.
// It checks the Origin first, so that a foreign page cannot use up a ticket.
func (a *authenticator) byConnectTicket(c *call) (err error) {
	if err := a.urls.checkUpgrade(c); err != nil {
		return err
	}
	ticket := c.QueryParam("ticket")
	if ticket == "" {
		return a.byKey(c)
	}
	c.byTicket = true
	if h, passed := forward.HopOf(c.Request().Context()); passed && h.KeyID != "" { // that node has used the ticket up
		c.caller, err = a.cluster.Caller(c.Request().Context(), h.KeyID)
		return err
	}
	c.caller, err = a.keys.RedeemTicket(c.Request().Context(), ticket)
	return a.countTicketFailure(c, ticket, err)
}
