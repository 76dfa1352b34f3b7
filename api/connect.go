package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/request"
)

// oneShotHandler answers GET /v1/connect.
type oneShotHandler struct {
	sessions    Sessions
	sockets     *cdpSockets
	idempotency *idempotency
	placer      *placer
	passTo      func(c *call, to placement.Node, h forward.Hop, refuses func(*http.Response) error) error
	log         *slog.Logger
}

// serve creates a session that lasts as long as one WebSocket.
func (h *oneShotHandler) serve(c *call) error {
	q := struct {
		createBody
		endQuery
		Ticket string `json:"ticket"` // read by the authorizer
	}{createBody: newCreate(), endQuery: newEnd()}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := firstOf(q.createBody.check(), q.endQuery.check()); err != nil {
		return err
	}
	q.audit(c.audit)
	request := q.createBody.request()
	request.RequestHash = h.idempotency.hashOf(q.createBody)
	here, wait := h.placer.here(c)
	if here {
		return h.connect(c, request, q.endQuery, wait)
	}
	return h.placer.place(c, request, func(wait time.Duration) error {
		return h.connect(c, request, q.endQuery, wait)
	}, func(to placement.Node, hop forward.Hop) error {
		if c.byTicket {
			hop.KeyID = c.caller.KeyID
		}
		if err := h.passTo(c, to, hop, refusedUpgrade); err != nil {
			return err
		}
		c.audit.class = auditNever // the other node records it
		return nil
	})
}

// connect creates the session here and serves it. wait is how long a create that another node has
// placed here may wait for its environment.
func (h *oneShotHandler) connect(c *call, r request.Create, ends endQuery, wait time.Duration) error {
	info, err := h.sessions.Create(c.Request().Context(), c.caller, h.placer.made(r, wait).Connecting())
	if err != nil {
		return err
	}
	c.Response().Header().Set("X-Session-Id", info.ID)
	c.audit.created(info)
	served := h.sockets.serve(c, info.ID, session.Client{})
	if info.Existing { // another caller created the session and ends it
		return served
	}
	end := ends.request()
	if !c.Response().Committed { // the client never connected: there is nothing to save
		end = newEnd().request()
	}
	// The client has disconnected. That must not cancel the save.
	if err := h.end(context.WithoutCancel(c.Request().Context()), c, info.ID, end); err != nil {
		h.log.Error("cannot end the session of a GET /v1/connect after its client left; end it with DELETE /v1/sessions/ID", "session_id", info.ID, "error", err)
	}
	return served
}

// end ends the session, which the audit log records like a DELETE.
func (h *oneShotHandler) end(ctx context.Context, c *call, id string, r request.End) error {
	a := &auditedCall{log: c.audit.log, class: auditAlways, Act: c.audit.Act}
	a.Call, a.SnapshotID, a.Detail = auditRules["DELETE "+sessionPath].call, "", string(r.Mode)
	ended, err := h.sessions.End(ctx, c.caller, id, r)
	if ended.Snapshot != nil {
		a.saved(*ended.Snapshot, ended.Default, ended.Code)
	}
	a.end(c, err)
	return err
}
