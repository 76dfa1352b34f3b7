package api

import (
	"context"
	"net/netip"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// authorizer finds out on whose behalf a call is made, and fills in the
// call's caller.
type authorizer func(c *call) error

func anybody(*call) error { return nil }

// SessionTickets are the tickets that the URLs of a session carry.
type SessionTickets interface {
	// AuthorizeTicket returns whom a session's ticket stands for, if it is for
	// that session and purpose; else unauthorized.
	AuthorizeTicket(ctx context.Context, ticket, sessionID string, p access.Purpose) (access.Caller, error)
}

var _ SessionTickets = (*access.TicketHolders)(nil)

// authenticator finds out whose keys and tickets clients send, and limits how fast
// they can be guessed.
type authenticator struct {
	keys     Keys
	tickets  SessionTickets
	urls     origins
	attempts *attempts
}

// byKey takes the API key from "Authorization: Bearer KEY" or "x-api-key".
func (a *authenticator) byKey(c *call) (err error) {
	secret := c.Request().Header.Get("x-api-key")
	if header := c.Request().Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "bearer") {
			return fault.New(fault.Unauthorized, "api.auth", "Authorization: must be Bearer and an API key")
		}
		secret = strings.TrimSpace(token)
	}
	if secret == "" {
		return fault.New(fault.Unauthorized, "api.auth", "")
	}
	from := a.addressOf(c)
	leave, err := a.attempts.enter(from, secret)
	if err != nil {
		return err
	}
	defer leave()
	c.caller, err = a.keys.Authenticate(c.Request().Context(), secret)
	if err == nil {
		a.attempts.passed(from, secret)
	}
	return a.attempts.judge(from, err)
}

// addressOf is the address that a client's failures count for.
func (a *authenticator) addressOf(c *call) netip.Prefix { return a.urls.client(c.Request()) }

// bySessionTicket takes a session's ticket for a purpose, as its URLs carry them,
// else a key.
func (a *authenticator) bySessionTicket(p access.Purpose) authorizer {
	return func(c *call) error {
		ticket := c.QueryParam("ticket")
		if ticket == "" {
			return a.byKey(c)
		}
		id, err := c.sessionID()
		if err != nil {
			return err
		}
		c.caller, err = a.tickets.AuthorizeTicket(c.Request().Context(), ticket, id, p)
		return a.judgeTicket(c, ticket, err)
	}
}

// judgeTicket is judge for a ticket. One that is old is no guess: a page that
// somebody has left open asks with it for ever.
func (a *authenticator) judgeTicket(c *call, ticket string, err error) error {
	if access.IsTicket(ticket) {
		return err
	}
	return a.attempts.judge(a.addressOf(c), err)
}

// byConnectTicket spends a one-use ticket, else takes a key. The Origin is
// looked at first, so that a foreign page cannot spend anything.
func (a *authenticator) byConnectTicket(c *call) (err error) {
	if err := a.urls.checkUpgrade(c); err != nil {
		return err
	}
	ticket := c.QueryParam("ticket")
	if ticket == "" {
		return a.byKey(c)
	}
	c.caller, err = a.keys.RedeemTicket(c.Request().Context(), ticket)
	return a.judgeTicket(c, ticket, err)
}
