package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// runAnswer is a run on the wire.
type runAnswer struct {
	RunID     string             `json:"run_id"`
	Number    int64              `json:"number"`
	Status    profiles.RunStatus `json:"status"`
	Cause     *string            `json:"cause"`
	StartedAt time.Time          `json:"started_at"`
	EndedAt   *time.Time         `json:"ended_at"`
}

func (s *Server) listRuns(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	runs, err := s.service.Runs(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	answers := make([]runAnswer, 0, len(runs))
	for _, r := range runs {
		answers = append(answers, runAnswer{r.ID, r.Number, r.Status, orNull(r.Cause), r.StartedAt.UTC(), timeOrNull(r.EndedAt)})
	}
	return c.JSON(http.StatusOK, map[string]any{"runs": answers})
}

// eventAnswer is an event on the wire, in a page and in a stream.
type eventAnswer struct {
	RunID     string          `json:"run_id"`
	Sequence  int64           `json:"sequence"`
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

func eventOf(e profiles.Event) eventAnswer {
	a := eventAnswer{e.RunID, e.Sequence, e.Type, e.At.UTC(), e.Data}
	if len(a.Data) == 0 {
		a.Data = json.RawMessage("{}")
	}
	return a
}

// eventPage is a page of a run's events; its names are those of the published
// run event records.
type eventPage struct {
	Events                  []eventAnswer `json:"events"`
	FirstAvailableSequence  int64         `json:"first_available_sequence"`
	LatestSequenceExclusive int64         `json:"latest_sequence_exclusive"`
	NextAfterSequence       int64         `json:"next_after_sequence"`
	RetentionGap            bool          `json:"retention_gap"`
	HasMore                 bool          `json:"has_more"`
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
	page, err := s.service.RunEvents(c.Request().Context(), c.caller, id, run, q.After, int(q.Limit), !q.Sanitize)
	if err != nil {
		return err
	}
	answer := eventPage{Events: make([]eventAnswer, 0, len(page.Events)), FirstAvailableSequence: page.First,
		LatestSequenceExclusive: page.LatestExclusive, NextAfterSequence: page.NextAfter, RetentionGap: page.Gap, HasMore: page.HasMore}
	for _, e := range page.Events {
		answer.Events = append(answer.Events, eventOf(e))
	}
	return c.JSON(http.StatusOK, answer)
}
