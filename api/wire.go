package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/wire"
)

// serializer encodes answers with package wire. Bodies of requests are read by bodyDecoder.
type serializer struct{ echo.DefaultJSONSerializer }

// Serialize writes an answer and a line feed. Answers are never indented.
func (serializer) Serialize(c echo.Context, v any, _ string) error {
	text, err := wire.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.Response().Write(append(text, '\n'))
	return err
}

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
