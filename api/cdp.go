package api

import (
	"context"
	"net/http"
	"regexp"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
)

var targetPattern = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)

// cdp is the WebSocket of a session's browser, or of one of its pages.
func (s *Server) cdp(c *call) error {
	if err := s.checkUpgrade(c); err != nil {
		return err
	}
	info, err := s.living(c)
	if err != nil {
		return err
	}
	if err := s.service.MayDrive(c.Request().Context(), c.caller, info.ID); err != nil {
		return err
	}
	target, err := c.param("target_id")
	if err != nil {
		return err
	}
	if target != "" && !targetPattern.MatchString(target) {
		return fault.New(fault.NotFound, "api.cdp", "no such page")
	}
	return s.serveCDP(c, info.ID, target)
}

// living is the session of the path, unless it has ended: what a client would
// otherwise learn from a socket that closes at once.
func (s *Server) living(c *call) (session.Info, error) {
	id, err := c.sessionID()
	if err != nil {
		return session.Info{}, err
	}
	info, err := s.service.Get(c.Request().Context(), c.caller, id)
	if err != nil {
		return session.Info{}, err
	}
	if info.Over() {
		return session.Info{}, fault.New(fault.SessionNotRunning, "api.cdp", "the session is %s", info.Status)
	}
	return info, nil
}

// browserVersion is Chrome's own /json/version, with the session's WebSocket.
func (s *Server) browserVersion(c *call) error {
	info, err := s.living(c)
	if err != nil {
		return err
	}
	product, protocol, agent, err := s.service.BrowserVersion(c.Request().Context(), c.caller, info.ID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{
		"Browser": product, "Protocol-Version": protocol, "User-Agent": agent,
		"webSocketDebuggerUrl": s.urls.of(c.Request()).cdp(info.ID, "", info.Tickets[session.PurposeCDP]),
	})
}

type pageAnswer struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Title  string `json:"title"`
	URL    string `json:"url"`
	Socket string `json:"webSocketDebuggerUrl"`
}

// pages is Chrome's own /json/list.
func (s *Server) pages(c *call) error {
	info, err := s.living(c)
	if err != nil {
		return err
	}
	pages, err := s.service.Pages(c.Request().Context(), c.caller, info.ID)
	if err != nil {
		return err
	}
	links, ticket := s.urls.of(c.Request()), info.Tickets[session.PurposeCDP]
	answers := make([]pageAnswer, 0, len(pages))
	for _, p := range pages {
		answers = append(answers, pageAnswer{p.ID, p.Type, p.Title, p.URL, links.cdp(info.ID, p.ID, ticket)})
	}
	return c.JSON(http.StatusOK, answers)
}

// connect makes a session for the length of one WebSocket.
func (s *Server) connect(c *call) error {
	q := struct {
		createBody
		endQuery
		Ticket string `json:"ticket"` // read by the authorizer
	}{createBody: newCreate(), endQuery: newEnd()}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := firstOf(q.createBody.check(), q.endQuery.check()); err != nil {
		return err
	}
	request := q.createBody.request()
	request.RequestHash = s.hashOf(q.createBody)
	info, err := s.service.Create(c.Request().Context(), c.caller, request)
	if err != nil {
		return err
	}
	c.Response().Header().Set("X-Session-Id", info.ID)
	served := s.serveCDP(c, info.ID, "")
	if info.Existing { // somebody else's to end
		return served
	}
	end := q.endQuery.request()
	if !c.Response().Committed { // never connected: nothing to keep
		end = newEnd().request()
	}
	// The client is gone, and the save must not go with it.
	if _, err := s.service.End(context.WithoutCancel(c.Request().Context()), c.caller, info.ID, end); err != nil {
		s.log.Error("one-shot session not ended", "session_id", info.ID, "error", err)
	}
	return served
}

// createTicket makes a one-use ticket. A repeat gets one of its own: tickets
// are not kept in plain, and one that is never used just expires.
func (s *Server) createTicket(c *call) error {
	var body none
	if _, err := s.body(c, &body); err != nil {
		return err
	}
	fresh := func() error {
		ticket, expires, err := s.keys.NewTicket(c.Request().Context(), c.caller)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusCreated, map[string]any{
			"ticket": ticket, "expires_at": expires.UTC(), "connect_url": s.urls.of(c.Request()).connect(ticket),
		})
	}
	return s.once(c, s.hashOf(body), making{
		make:   func() (any, func() error, error) { return none{}, fresh, nil },
		replay: func([]byte) error { return fresh() },
	})
}
