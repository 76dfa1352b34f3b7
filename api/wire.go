package api

import (
	"net/http"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
)

// sessionAnswer returns the answer about a session, with URLs that the client of the
// request can reach.
func (o origins) sessionAnswer(r *http.Request, info answer.Info) answer.Session {
	a := info.Answer()
	urls := o.of(r)
	if ticket := info.Tickets[access.PurposeCDP]; ticket != "" {
		a.CDPURL = answer.OrNull(urls.cdp(info.ID, "", ticket))
	}
	if ticket := info.Tickets[access.PurposeView]; ticket != "" {
		a.VNCURL = answer.OrNull(urls.live(info.ID, ticket))
	}
	if ticket := info.Tickets[access.PurposeControl]; ticket != "" {
		a.AgentURL = answer.OrNull(urls.live(info.ID, ticket))
	}
	return a
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
