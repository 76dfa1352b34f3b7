package api

import (
	"time"

	"github.com/stasisd/stasis/session"
)

// session is the answer about a session, with URLs as this client reaches them.
func (s *Server) session(c *call, info session.Info) session.SessionAnswer {
	a := info.Answer()
	urls := s.urls.of(c.Request())
	if ticket := info.Tickets[session.PurposeCDP]; ticket != "" {
		a.CDPURL = orNull(urls.cdp(info.ID, "", ticket))
	}
	if ticket := info.Tickets[session.PurposeView]; ticket != "" {
		a.VNCURL = orNull(urls.live(info.ID, ticket))
		a.AgentURL = a.VNCURL
	}
	return a
}

func texts(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
