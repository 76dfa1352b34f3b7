package api

import (
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
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
	c.caller, err = s.service.Authenticate(c.Request().Context(), secret)
	return err
}

// bySessionTicket takes the ticket that a cdp_url carries, else a key.
func (s *Server) bySessionTicket(c *call) (err error) {
	ticket := c.QueryParam("ticket")
	if ticket == "" {
		return s.byKey(c)
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	if c.caller, err = s.service.AuthorizeTicket(c.Request().Context(), ticket, id); err != nil {
		return err
	}
	c.ticket = ticket
	return nil
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
	c.caller, err = s.service.RedeemTicket(c.Request().Context(), ticket)
	return err
}

// ticketFor is the session ticket to put into a link for this client: the one
// that it came with, else the session's own.
func (c *call) ticketFor(info session.Info) string {
	if c.ticket != "" {
		return c.ticket
	}
	return info.Ticket
}
