package api

import (
	"net/http"
	"time"

	"github.com/stasisd/stasis/fault"
)

// runAnswer is a run on the wire.
type runAnswer struct {
	RunID     string     `json:"run_id"`
	Number    int64      `json:"number"`
	Status    string     `json:"status"`
	Cause     *string    `json:"cause"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
}

func (s *Server) listRuns(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	runs, err := s.history.Runs(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	answers := make([]runAnswer, 0, len(runs))
	for _, r := range runs {
		answers = append(answers, runAnswer{r.ID, r.Number, r.Status, orNull(r.Cause), r.StartedAt.UTC(), timeOrNull(r.EndedAt)})
	}
	return c.JSON(http.StatusOK, map[string]any{"runs": answers})
}

func (s *Server) runEvents(c *call) error {
	q := struct {
		After    int64 `json:"after"`
		Limit    int64 `json:"limit"`
		Sanitize bool  `json:"sanitize"`
	}{Limit: defaultPage, Sanitize: true}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := firstOf(within("after", q.After, 0, 1<<53), within("limit", q.Limit, 1, largestPage)); err != nil {
		return err
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	run, err := c.id("run_id", fault.RunNotFound)
	if err != nil {
		return err
	}
	page, err := s.history.RunEvents(c.Request().Context(), c.caller, id, run, q.After, int(q.Limit), !q.Sanitize)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, page)
}
