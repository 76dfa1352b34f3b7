package api

import (
	"context"
	"encoding/base64"
	"net/http"

	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
)

func (s *Server) status(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	answer, err := s.service.Status(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}

// acknowledge makes the handler of pause or cancel.
func (s *Server) acknowledge(do func(context.Context, access.Caller, string) (session.Acknowledged, error)) handler {
	return func(c *call) error {
		if _, err := s.body(c, &none{}); err != nil {
			return err
		}
		id, err := c.sessionID()
		if err != nil {
			return err
		}
		answer, err := do(c.Request().Context(), c.caller, id)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, answer)
	}
}

// cancel stops the task of a session's agent.
func (s *Server) cancel(ctx context.Context, c access.Caller, id string) (session.Acknowledged, error) {
	cancelled, err := s.messenger.Cancel(ctx, c, id)
	answer := session.Acknowledged{Success: true, Status: "cancelled", Message: "no task is running; the browser runs on"}
	if cancelled {
		answer.Message = "the task is cancelled; the browser runs on"
	}
	return answer, err
}

// resumedAnswer is the answer of resume: the acknowledgement, and what a client
// needs to connect.
type resumedAnswer struct {
	session.Acknowledged
	SessionID string  `json:"session_id"`
	CDPURL    *string `json:"cdp_url"` // null: it has ended again
}

func (s *Server) resume(c *call) error {
	if _, err := s.body(c, &none{}); err != nil {
		return err
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	done, err := s.service.Resume(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	info, err := s.service.Get(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, resumedAnswer{done, id, s.session(c, info).CDPURL})
}

func (s *Server) navigate(c *call) error {
	var body struct {
		URL string `json:"url"`
	}
	if _, err := s.body(c, &body); err != nil {
		return err
	}
	if body.URL == "" {
		return invalid("url", "is required")
	}
	if err := isPageURL("url", body.URL); err != nil {
		return err
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	current, err := s.service.Navigate(c.Request().Context(), c.caller, id, body.URL)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{"current_url": current})
}

func (s *Server) screenshot(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	shot, err := s.service.Screenshot(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{
		"screenshot": "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(shot.JPEG),
		"url":        shot.URL,
		"title":      shot.Title,
	})
}

// models answers clients that ask for agents: there are none here.
func (s *Server) models(c *call) error {
	var q struct {
		Filter string `json:"filter"`
	}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := oneOf("filter", q.Filter, "cdp", "desktop"); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string][]string{"models": {}})
}

// livePage is the live view; livePicture is what it shows.
func (s *Server) livePage(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	if _, err := s.service.Get(c.Request().Context(), c.caller, id); err != nil {
		return err
	}
	return s.live.Write(c.Response())
}

func (s *Server) livePicture(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	shot, err := s.service.Screenshot(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "image/jpeg", shot.JPEG)
}
