package api

import (
	"context"
	"net/http"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/events"
)

// History reads what happened in sessions. secrets includes the secrets in events; the
// caller needs the right to see them.
type History interface {
	Runs(ctx context.Context, c access.Caller, id string) ([]events.Run, error)
	RunEvents(ctx context.Context, c access.Caller, id, runID string, after int64, limit int, secrets bool) (events.EventPage, error)
	// Follow returns a stream that the caller must close.
	Follow(ctx context.Context, c access.Caller, id string, f events.FollowRequest) (events.Stream, error)
}

var _ History = (*events.Reader)(nil)

// Streams counts the open event streams.
type Streams interface {
	// OpenSocket counts a stream of a session that the caller may follow, until release is
	// called; quota_exceeded if there are too many.
	OpenSocket(ctx context.Context, c access.Caller, id string) (release func(), err error)
}

var _ Streams = (*session.Service)(nil)

// historyHandler serves the runs and events of a session: pages in this file, streams in
// stream.go.
type historyHandler struct {
	history   History
	streams   Streams
	heartbeat time.Duration   // between two heartbeats of a stream
	closing   context.Context // streams end when it ends
}

// runAnswer is a run on the wire.
type runAnswer struct {
	ID        string     `json:"id"` // the same as run_id
	RunID     string     `json:"run_id"`
	Number    int64      `json:"number"`
	Status    string     `json:"status"`
	Cause     *string    `json:"cause"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
}

func (h *historyHandler) listRuns(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	runs, err := h.history.Runs(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	answers := make([]runAnswer, 0, len(runs))
	for _, r := range runs {
		answers = append(answers, runAnswer{r.ID, r.ID, r.Number, r.Status, answer.OrNull(r.Cause), r.StartedAt.UTC(), answer.TimeOrNull(r.EndedAt)})
	}
	return c.JSON(http.StatusOK, map[string]any{"runs": answers})
}

func (h *historyHandler) runEvents(c *call) error {
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
	if !q.Sanitize {
		c.audit.secrets()
	}
	page, err := h.history.RunEvents(c.Request().Context(), c.caller, id, run, q.After, int(q.Limit), !q.Sanitize)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, page)
}
