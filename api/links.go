package api

import (
	"context"
	"net/http"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
)

// Sharing makes shared links to the live views of sessions.
type Sharing interface {
	// Share makes a link and its ticket; see [access.LiveSession.Share].
	Share(ctx context.Context, c access.Caller, id string, control bool, life time.Duration) (_ access.Link, ticket string, err error)
	// Links lists the links that have not ended.
	Links(ctx context.Context, c access.Caller, id string) ([]access.Link, error)
	// Revoke ends a link and disconnects its viewers.
	Revoke(ctx context.Context, c access.Caller, id, linkID string) error
}

var _ Sharing = (*session.Service)(nil)

// linkHandler makes, lists and revokes shared links.
type linkHandler struct {
	sharing Sharing
	bodies  *bodyDecoder
	urls    origins
}

// defaultLinkSeconds is how long a link is valid if the call does not say it.
const defaultLinkSeconds = 3600

type linkAnswer struct {
	ID        string    `json:"link_id"`
	Control   bool      `json:"control"`
	ExpiresAt time.Time `json:"expires_at"`
}

func answerOfLink(l access.Link) linkAnswer { return linkAnswer{l.ID, l.Control, l.ExpiresAt.UTC()} }

func (h *linkHandler) create(c *call) error {
	body := struct {
		Control bool  `json:"control"`
		Expires int64 `json:"expires_in_seconds"`
	}{Expires: defaultLinkSeconds}
	if _, err := h.bodies.decode(c, &body); err != nil {
		return err
	}
	shortest, longest := int64(access.ShortestLink.Seconds()), int64(access.LongestLink.Seconds())
	if body.Expires < shortest || body.Expires > longest {
		return invalid("expires_in_seconds", "must be from %d to %d", shortest, longest)
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	link, ticket, err := h.sharing.Share(c.Request().Context(), c.caller, id, body.Control, time.Duration(body.Expires)*time.Second)
	if err != nil {
		return err
	}
	c.audit.Object, c.audit.Detail = link.ID, "view"
	if link.Control {
		c.audit.Detail = "control"
	}
	return c.JSON(http.StatusCreated, struct {
		linkAnswer
		URL string `json:"url"`
	}{answerOfLink(link), h.urls.of(c.Request()).live(id, ticket)})
}

func (h *linkHandler) list(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	list, err := h.sharing.Links(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	type used struct {
		linkAnswer
		Viewers int `json:"viewers"`
	}
	answers := make([]used, 0, len(list))
	for _, l := range list {
		answers = append(answers, used{answerOfLink(l), l.Viewers})
	}
	return c.JSON(http.StatusOK, map[string]any{"links": answers})
}

func (h *linkHandler) revoke(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	link, err := c.id("link_id", fault.LinkNotFound)
	if err != nil {
		return err
	}
	if err := h.sharing.Revoke(c.Request().Context(), c.caller, id, link); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
