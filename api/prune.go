package api

import (
	"context"
	"net/http"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
)

// Pruner removes the snapshots that no retention policy keeps.
type Pruner interface {
	Prune(ctx context.Context, c access.Caller, r library.PruneRequest) (library.PruneAnswer, error)
}

var _ Pruner = (*library.Pruner)(nil)

func (h *snapshotHandler) prune(c *call) error {
	var body struct {
		UserID string `json:"user_id"`
		All    bool   `json:"all"`
		DryRun bool   `json:"dry_run"`
	}
	if err := h.bodies.decodeStrict(c, &body); err != nil {
		return err
	}
	if err := isUserID("user_id", body.UserID); err != nil {
		return err
	}
	if body.All && body.UserID != "" {
		return invalid("all", "must not be true together with user_id")
	}
	answer, err := h.pruner.Prune(c.Request().Context(), c.caller, library.PruneRequest{UserID: body.UserID, All: body.All, DryRun: body.DryRun})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}
