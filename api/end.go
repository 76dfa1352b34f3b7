package api

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
)

// endQuery says what happens to the environment when a session ends.
type endQuery struct {
	Mode          string `json:"save_snapshot_mode"`
	SaveAsDefault bool   `json:"save_as_default"`
	Conflict      string `json:"default_conflict"`
	Include       string `json:"origins_include"` // entries separated by commas
	Exclude       string `json:"origins_exclude"`
}

func newEnd() endQuery {
	return endQuery{Mode: string(save.None), Conflict: string(save.Keep)}
}

func (q endQuery) check() error {
	if err := firstOf(
		oneOf("save_snapshot_mode", q.Mode, "none", "filesystem", "memory"),
		oneOf("default_conflict", q.Conflict, "keep", "overwrite"),
	); err != nil {
		return err
	}
	if q.SaveAsDefault && q.Mode == string(save.None) {
		return invalid("save_as_default", "needs save_snapshot_mode filesystem or memory")
	}
	if q.Include+q.Exclude != "" && q.Mode != string(save.Filesystem) {
		return invalid("origins_include, origins_exclude", "need save_snapshot_mode filesystem")
	}
	return firstOf(areEntries("origins_include", splitList(q.Include)), areEntries("origins_exclude", splitList(q.Exclude)))
}

func (q endQuery) request() request.End {
	return request.End{
		Mode: save.Mode(q.Mode), SaveAsDefault: q.SaveAsDefault, Conflict: save.Conflict(q.Conflict),
		Origins: selectionBody{Include: splitList(q.Include), Exclude: splitList(q.Exclude)}.selection(),
	}
}

func (h *sessionHandler) delete(c *call) error {
	id, err := c.param("session_id")
	if err != nil {
		return err
	}
	if id == "" { // DELETE /v1/sessions/ must not be taken for another call
		return fault.New(fault.NotFound, "api.path", "")
	}
	q := newEnd()
	if err := c.query(&q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	if !idPattern.MatchString(id) { // answered like any session that does not exist
		if q.Mode != string(save.None) {
			return access.NoSession(shortened(id))
		}
		return c.JSON(http.StatusOK, save.EndAnswer{Success: true, Message: fault.SessionNotFound.Text()})
	}
	c.audit.Detail = q.Mode
	answer, err := h.sessions.End(c.Request().Context(), c.caller, id, q.request())
	if err != nil {
		return err
	}
	return answerEnd(c, answer)
}

// answerEnd answers an end. If the default was kept although the caller asked for it to
// move, the answer is an error too.
func answerEnd(c *call, answer save.EndAnswer) error {
	if answer.Snapshot != nil {
		c.audit.saved(*answer.Snapshot, answer.Default, answer.Code)
	}
	if answer.Code == "" {
		return c.JSON(http.StatusOK, answer.Normalized())
	}
	return c.JSON(statusOf(answer.Code), struct {
		save.EndAnswer
		RequestID string `json:"request_id"`
	}{answer.Normalized(), c.Response().Header().Get(requestIDHeader)})
}

func (h *sessionHandler) deleteAll(c *call) error {
	q := struct {
		endQuery
		UserID string `json:"user_id"`
		All    bool   `json:"all"`
	}{endQuery: newEnd()}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := firstOf(q.check(), isUserID("user_id", q.UserID)); err != nil {
		return err
	}
	if q.All && q.UserID != "" {
		return invalid("all", "must not be true together with user_id")
	}
	c.audit.UserID, c.audit.Detail = cmp.Or(q.UserID, c.caller.UserID), q.Mode
	if q.All {
		c.audit.UserID, c.audit.Object = "", "all"
	}
	answer, err := h.sessions.EndAll(c.Request().Context(), c.caller, request.EndAll{
		End: q.request(), UserID: q.UserID, All: q.All,
	})
	if err != nil {
		return err
	}
	if _, passed := forward.HopOf(c.Request().Context()); passed {
		c.Response().Header().Set(endedHeader, strconv.Itoa(answer.Ended))
	}
	if err := h.placer.others(c, func(other forward.Answer) error {
		var there save.EndAnswer
		if err := json.Unmarshal(other.Body, &there); err != nil || other.Status >= http.StatusBadRequest && !there.Deleted {
			return cmp.Or(other.Fault(), err)
		}
		there.Ended = endedBy(other)
		answer = answer.With(there)
		return nil
	}); err != nil {
		return err
	}
	return answerEnd(c, answer)
}
