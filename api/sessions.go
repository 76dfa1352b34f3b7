package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/inspect"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/save"
)

// Sessions creates and ends sessions. Like every interface of [Options], it is safe for
// concurrent use and checks what the caller may do. Errors are faults. Objects that belong
// to others are answered as if they did not exist.
type Sessions interface {
	Create(ctx context.Context, c access.Caller, r request.Create) (answer.Info, error)
	End(ctx context.Context, c access.Caller, id string, r request.End) (save.EndAnswer, error)
	EndAll(ctx context.Context, c access.Caller, r request.EndAll) (save.EndAnswer, error)
}

// Inspector describes live and ended sessions.
type Inspector interface {
	Get(ctx context.Context, c access.Caller, id string) (answer.Info, error)
	// Examine is Get with a recent measurement of the session's memory.
	Examine(ctx context.Context, c access.Caller, id string) (answer.Info, error)
	List(ctx context.Context, c access.Caller, r request.List) (page []answer.Info, next string, err error)
	// Here describes those sessions with the IDs that live in this daemon, for a list. It leaves
	// out what the caller may not look at.
	Here(ctx context.Context, c access.Caller, ids []string) ([]answer.Info, error)
	// Status describes the state of a session and of its agent's task.
	Status(ctx context.Context, c access.Caller, id string) (agent.Status, error)
	RestoreReport(ctx context.Context, c access.Caller, id string) (restore.Report, error)
}

var (
	_ Sessions  = (*session.Service)(nil)
	_ Inspector = (*inspect.Inspector)(nil)
)

// sessionHandler creates, shows and ends sessions (/v1/sessions).
type sessionHandler struct {
	sessions    Sessions
	inspector   Inspector
	bodies      *bodyDecoder
	idempotency *idempotency
	urls        origins
	placer      *placer
}

// recordedCreate is the part of a create's answer that is stored. The rest is read from the
// session again: its URLs contain a ticket, which must not be stored.
type recordedCreate struct {
	SessionID string   `json:"session_id"`
	Ignored   []string `json:"ignored_fields,omitempty"`
	Shared    bool     `json:"shared,omitempty"` // no session was created: see on_live
}

// status returns 201, or 200 if there is no new session to connect to: for a session that
// is shared, for one that a create with resume found running, and for a repeat after the
// session of the first call has ended.
func (r recordedCreate) status(now answer.Info) int {
	if r.Shared || now.Ended() {
		return http.StatusOK
	}
	return http.StatusCreated
}

func (h *sessionHandler) create(c *call) error {
	var kept *bytes.Buffer
	here, wait := h.placer.here(c)
	if !here {
		kept = keepBody(c)
	}
	body := newCreate()
	ignored, err := h.bodies.decode(c, &body)
	if err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	body.audit(c.audit)
	request := body.request()
	request.RequestHash = h.idempotency.hashOf(body)
	var chosen recordedCreate
	if request.SessionID == "" {
		chosen.SessionID = h.placer.chosenID(c)
	}
	local := func(wait time.Duration) (recordedCreate, func() error, error) {
		info, err := h.sessions.Create(c.Request().Context(), c.caller, h.placer.made(request, wait))
		if err != nil {
			return recordedCreate{}, nil, err
		}
		first := recordedCreate{info.ID, ignored, info.Existing && (info.ID != request.SessionID || body.Resume)}
		return first, func() error { return h.answerCreate(c, first, info) }, nil
	}
	if here && h.placer != nil { // the other node has the Idempotency-Key
		request.SessionID = cmp.Or(request.SessionID, chosen.SessionID)
		_, answer, err := local(wait)
		if err != nil {
			return err
		}
		c.audit.class = auditAlways
		return answer()
	}
	m := creation{
		make: func() (any, func() error, error) {
			request.SessionID = cmp.Or(request.SessionID, chosen.SessionID)
			if here {
				return local(wait)
			}
			return h.place(c, request, kept.Bytes(), local)
		},
		replay: func(data []byte) error {
			var first recordedCreate
			if err := json.Unmarshal(data, &first); err != nil {
				return fault.Wrap(err, fault.Internal, "api.replay", "")
			}
			if answer, found, err := h.placer.get(c, first.SessionID); found || err != nil {
				if err == nil {
					err = h.answerPlaced(c, first, answer)
				}
				return err
			}
			info, err := h.inspector.Get(c.Request().Context(), c.caller, first.SessionID)
			if err != nil {
				return err
			}
			return h.answerCreate(c, first, info)
		},
	}
	if chosen.SessionID != "" {
		m.chosen = &chosen
	}
	return h.idempotency.once(c, request.RequestHash, m)
}

// place makes a session on the node where it is quickest.
func (h *sessionHandler) place(c *call, r request.Create, body []byte, local func(wait time.Duration) (recordedCreate, func() error, error)) (first recordedCreate, answer func() error, err error) {
	err = h.placer.place(c, r, func(wait time.Duration) error {
		first, answer, err = local(wait)
		return err
	}, func(to placement.Node, hop forward.Hop) error {
		made, err := h.placer.createOn(c, to, hop, body)
		if err != nil {
			if forward.Unanswered(err) {
				c.audit.SessionID = r.SessionID
			}
			return err
		}
		if err := made.Fault(); err != nil {
			return err
		}
		if err := json.Unmarshal(made.Body, &first); err != nil {
			return fault.Wrap(err, fault.Internal, "api.place", "")
		}
		c.audit.class = auditNever // that node records it
		first.Shared = made.Status == http.StatusOK
		answer = func() error { return h.answerPlaced(c, first, made) }
		return nil
	})
	return first, answer, err
}

// answerPlaced answers a create with what the session's node says of the session.
func (h *sessionHandler) answerPlaced(c *call, first recordedCreate, of forward.Answer) error {
	if err := of.Fault(); err != nil {
		return err
	}
	var session struct {
		UserID   string `json:"user_id"`
		Restored *struct {
			SnapshotID string `json:"snapshot_id"`
		} `json:"restored"`
		EndedAt *time.Time `json:"ended_at"`
	}
	all := map[string]json.RawMessage{}
	if err := errors.Join(json.Unmarshal(of.Body, &session), json.Unmarshal(of.Body, &all)); err != nil {
		return fault.Wrap(err, fault.Internal, "api.place", "the answer of another node cannot be read")
	}
	c.audit.SessionID, c.audit.UserID, c.audit.Detail = first.SessionID, session.UserID, ""
	if session.Restored != nil {
		c.audit.SnapshotID = session.Restored.SnapshotID
	}
	status := http.StatusCreated
	if first.Shared || session.EndedAt != nil {
		status = http.StatusOK
	}
	if len(first.Ignored) > 0 {
		ignored, err := json.Marshal(first.Ignored)
		if err != nil {
			return fault.Wrap(err, fault.Internal, "api.place", "")
		}
		all["ignored_fields"] = ignored
		return c.JSON(status, all)
	}
	return c.JSONBlob(status, of.Body)
}

func (h *sessionHandler) answerCreate(c *call, first recordedCreate, info answer.Info) error {
	c.audit.created(info)
	answer := h.urls.sessionAnswer(c.Request(), info)
	answer.IgnoredFields = first.Ignored
	return c.JSON(first.status(info), answer)
}

func (h *sessionHandler) list(c *call) error {
	if listsForNode(c) {
		return h.listForNode(c)
	}
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
	c.audit.listing(c, q.UserID)
	page, next, err := h.inspector.List(c.Request().Context(), c.caller, request.List{
		Status: q.Status, UserID: q.UserID, Limit: int(q.Limit), StartAfter: q.StartAfter,
	})
	if err != nil {
		return err
	}
	if next != "" {
		c.Response().Header().Set("X-Next-Token", next)
	}
	return h.answerPage(c, page)
}

func (h *sessionHandler) get(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	info, err := h.inspector.Examine(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, h.urls.sessionAnswer(c.Request(), info))
}

func (h *sessionHandler) restoreReport(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	report, err := h.inspector.RestoreReport(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, report.Normalized())
}
