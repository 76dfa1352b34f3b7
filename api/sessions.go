package api

import (
	"encoding/json"
	"net/http"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
)

// recordedCreate is what is kept of a create's answer. The rest is read from
// the session again: its URLs hold a ticket, which is not for keeping.
type recordedCreate struct {
	SessionID string   `json:"session_id"`
	Ignored   []string `json:"ignored_fields,omitempty"`
	Shared    bool     `json:"shared,omitempty"` // nothing was made: see on_live
}

// status is 201, but for a session that was shared, for one that a create with resume
// found running, and for a repeat when the
// session that the first call made has ended: there is none to connect to.
func (r recordedCreate) status(now session.Info) int {
	if r.Shared || now.Over() {
		return http.StatusOK
	}
	return http.StatusCreated
}

func (s *Server) createSession(c *call) error {
	body := newCreate()
	ignored, err := s.body(c, &body)
	if err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	request := body.request()
	request.RequestHash = s.hashOf(body)
	return s.once(c, request.RequestHash, making{
		make: func() (any, func() error, error) {
			info, err := s.service.Create(c.Request().Context(), c.caller, request)
			if err != nil {
				return nil, nil, err
			}
			first := recordedCreate{info.ID, ignored, info.Existing && (info.ID != body.SessionID || body.Resume)}
			return first, func() error { return s.answerCreate(c, first, info) }, nil
		},
		replay: func(data []byte) error {
			var first recordedCreate
			if err := json.Unmarshal(data, &first); err != nil {
				return fault.Wrap(err, fault.Internal, "api.replay", "")
			}
			info, err := s.service.Get(c.Request().Context(), c.caller, first.SessionID)
			if err != nil {
				return err
			}
			return s.answerCreate(c, first, info)
		},
	})
}

func (s *Server) answerCreate(c *call, first recordedCreate, info session.Info) error {
	answer := s.session(c, info)
	answer.IgnoredFields = first.Ignored
	return c.JSON(first.status(info), answer)
}

func (s *Server) listSessions(c *call) error {
	q := struct {
		Status string `json:"status"`
		UserID string `json:"user_id"`
		listing
	}{listing: firstPage()}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := firstOf(
		oneOf("status", q.Status, "initializing", "ready", "running", "paused", "completed", "terminated", "error"),
		isUserID("user_id", q.UserID),
		q.check(),
	); err != nil {
		return err
	}
	page, next, err := s.service.List(c.Request().Context(), c.caller, session.ListRequest{
		Status: q.Status, UserID: q.UserID, Limit: int(q.Limit), StartAfter: q.StartAfter,
	})
	if err != nil {
		return err
	}
	answers := make([]session.SessionAnswer, 0, len(page))
	for _, info := range page {
		answer := s.session(c, info)
		if answer.Restored != nil {
			answer.Restored.Notes = nil // a page of them could be large; its session has it
		}
		answers = append(answers, answer)
	}
	if next != "" {
		c.Response().Header().Set("X-Next-Token", next)
	}
	return c.JSON(http.StatusOK, answers)
}

func (s *Server) getSession(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	info, err := s.service.Get(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, s.session(c, info))
}

func (s *Server) restoreReport(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	report, err := s.service.RestoreReport(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, report.Whole())
}
