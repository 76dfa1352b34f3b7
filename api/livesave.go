package api

import (
	"context"
	"net/http"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/session/save"
)

// liveSaver saves a session as the user's default for the page of the live view.
type liveSaver struct {
	sessions Sessions
	logins   Logins
	bodies   *bodyDecoder
	now      func() time.Time
}

// liveSaveAnswer is the answer of an end, and what a person wants to know about the login.
type liveSaveAnswer struct {
	save.EndAnswer
	// Sites are the sites with a login in the snapshot.
	Sites []library.SavedSite `json:"sites"`
	// LoginCheck is the user's login check, made with the new default or before it moved;
	// nil if the user has none, or the default did not move.
	LoginCheck *login.Outcome `json:"login_check"`
	RequestID  string         `json:"request_id,omitempty"` // with a code
}

// save ends the session as DELETE does, with save_as_default. Then it makes the user's login
// check. A repeat after the end gets what was saved.
func (h *liveSaver) save(c *call) error {
	q := struct {
		Ticket   string `json:"ticket"`
		Conflict string `json:"default_conflict"`
	}{Conflict: string(save.Keep)}
	if err := c.query(&q); err != nil {
		return err
	}
	if _, err := h.bodies.decode(c, &none{}); err != nil {
		return err
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	end := endQuery{Mode: string(save.Filesystem), SaveAsDefault: true, Conflict: q.Conflict}
	if err := end.check(); err != nil {
		return err
	}
	ctx := c.Request().Context()
	ended, err := h.sessions.End(ctx, c.caller, id, end.request())
	if err != nil {
		return err
	}
	if ended.Snapshot != nil {
		c.audit.saved(*ended.Snapshot, ended.Default, ended.Code)
	}
	answer := liveSaveAnswer{EndAnswer: ended.Normalized(), Sites: []library.SavedSite{}}
	if answer.Snapshot != nil {
		answer.Sites = answer.Snapshot.Sites()
	}
	if d := answer.Default; d != nil {
		answer.LoginCheck = d.LoginCheck
		if d.Moved && d.LoginCheck == nil && answer.Snapshot != nil {
			answer.LoginCheck = h.check(ctx, c.caller, answer.Snapshot.UserID)
		}
	}
	status := http.StatusOK
	if answer.Code != "" {
		status, answer.RequestID = statusOf(answer.Code), c.Response().Header().Get(requestIDHeader)
	}
	return c.JSON(status, answer)
}

// check makes the user's login check; nil if the user has none, or the caller may not make it.
func (h *liveSaver) check(ctx context.Context, c access.Caller, userID string) *login.Outcome {
	outcome, err := h.logins.CheckDefault(ctx, c, userID)
	switch {
	case fault.Is(err, fault.NoLoginCheck), fault.Is(err, fault.Forbidden):
		return nil
	case err != nil:
		outcome = login.NotChecked(h.now(), err)
	}
	return &outcome
}
