package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
)

// Checkpoints makes snapshots of sessions that continue.
type Checkpoints interface {
	Checkpoint(ctx context.Context, c access.Caller, id string, r request.Checkpoint) (save.CheckpointAnswer, error)
}

var _ Checkpoints = (*session.Service)(nil)

// checkpointHandler answers POST /v1/sessions/{session_id}/snapshots.
type checkpointHandler struct {
	checkpoints Checkpoints
	bodies      *bodyDecoder
	idempotency *idempotency
}

// checkpointBody requests a snapshot of a session that continues.
type checkpointBody struct {
	Mode          string `json:"mode"`
	SaveAsDefault bool   `json:"save_as_default"`
	Conflict      string `json:"default_conflict"`
	Label         string `json:"label"`
}

func (b checkpointBody) check() error {
	if b.Mode == string(save.Memory) {
		return fault.New(fault.Unsupported, "api.check",
			"mode: a session that continues cannot have a memory snapshot; use filesystem, or end the session with save_snapshot_mode=memory")
	}
	return firstOf(
		oneOf("mode", b.Mode, string(save.Filesystem)),
		oneOf("default_conflict", b.Conflict, "keep", "overwrite"),
		atMost("label", b.Label, 256),
	)
}

func (h *checkpointHandler) create(c *call) error {
	body := checkpointBody{Mode: string(save.Filesystem), Conflict: string(save.Keep)}
	ignored, err := h.bodies.decode(c, &body)
	if err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	asked := request.Checkpoint{SaveAsDefault: body.SaveAsDefault, Conflict: save.Conflict(body.Conflict), Label: body.Label}
	return h.idempotency.once(c, h.idempotency.hashOf([]any{id, body}), creation{
		make: func() (any, func() error, error) {
			made, err := h.checkpoints.Checkpoint(c.Request().Context(), c.caller, id, asked)
			if err != nil {
				return nil, nil, err
			}
			answer := checkpointAnswer{made, ignored}
			return answer, func() error { return answer.write(c) }, nil
		},
		replay: func(data []byte) error {
			var answer checkpointAnswer
			if err := json.Unmarshal(data, &answer); err != nil {
				return fault.Wrap(err, fault.Internal, "api.replay", "")
			}
			return answer.write(c)
		},
	})
}

type checkpointAnswer struct {
	save.CheckpointAnswer
	Ignored []string `json:"ignored_fields,omitempty"`
}

// write answers 201, or 200 if nothing had changed and no snapshot was made.
func (a checkpointAnswer) write(c *call) error {
	status := http.StatusCreated
	if a.Unchanged {
		status = http.StatusOK
	}
	c.audit.saved(a.Snapshot, a.Default, a.Code)
	a.Snapshot = a.Snapshot.Normalized()
	return c.JSON(status, a)
}
