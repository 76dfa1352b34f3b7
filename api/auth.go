package api

import (
	"net/netip"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
)

// authorizer finds out on whose behalf a call is made, and fills in the
// call's caller.
type authorizer func(c *call) error

func anybody(*call) error { return nil }

// byKey takes the API key from "Authorization: Bearer KEY" or "x-api-key".
func (s *Server) byKey(c *call) (err error) {
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
	from := s.addressOf(c)
	leave, err := s.attempts.enter(from, secret)
	if err != nil {
		return err
	}
	defer leave()
	c.caller, err = s.keys.Authenticate(c.Request().Context(), secret)
	if err == nil {
		s.attempts.passed(from, secret)
	}
	return s.attempts.judge(from, err)
}

// addressOf is the address that a client's failures count for.
func (s *Server) addressOf(c *call) netip.Prefix { return s.urls.client(c.Request()) }

// bySessionTicket takes a session's ticket for a purpose, as its URLs carry them,
// else a key.
func (s *Server) bySessionTicket(p session.Purpose) authorizer {
	return func(c *call) error {
		ticket := c.QueryParam("ticket")
		if ticket == "" {
			return s.byKey(c)
		}
		id, err := c.sessionID()
		if err != nil {
			return err
		}
		c.caller, err = s.service.AuthorizeTicket(c.Request().Context(), ticket, id, p)
		return s.judgeTicket(c, ticket, err)
	}
}

// judgeTicket is judge for a ticket. One that is old is no guess: a page that
// somebody has left open asks with it for ever.
func (s *Server) judgeTicket(c *call, ticket string, err error) error {
	if access.IsTicket(ticket) {
		return err
	}
	return s.attempts.judge(s.addressOf(c), err)
}

// byConnectTicket spends a one-use ticket, else takes a key. The Origin is
// looked at first, so that a foreign page cannot spend anything.
func (s *Server) byConnectTicket(c *call) (err error) {
	if err := s.checkUpgrade(c); err != nil {
		return err
	}
	ticket := c.QueryParam("ticket")
	if ticket == "" {
		return s.byKey(c)
	}
	c.caller, err = s.keys.RedeemTicket(c.Request().Context(), ticket)
	return s.judgeTicket(c, ticket, err)
}
