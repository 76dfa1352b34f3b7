package api

import (
	"net/http"
	"time"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
)

// sessionAnswer is the answer about a session, with URLs as the client behind the
// request reaches them.
func (o origins) sessionAnswer(r *http.Request, info answer.Info) answer.Session {
	a := info.Answer()
	urls := o.of(r)
	if ticket := info.Tickets[access.PurposeCDP]; ticket != "" {
		a.CDPURL = orNull(urls.cdp(info.ID, "", ticket))
	}
	if ticket := info.Tickets[access.PurposeView]; ticket != "" {
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
