package api

import (
	"net/http"

	"github.com/stasisd/stasis/session/library"
)

func (s *Server) prune(c *call) error {
	var body struct {
		UserID string `json:"user_id"`
		All    bool   `json:"all"`
		DryRun bool   `json:"dry_run"`
	}
	if err := s.strictBody(c, &body); err != nil {
		return err
	}
	if err := isUserID("user_id", body.UserID); err != nil {
		return err
	}
	if body.All && body.UserID != "" {
		return invalid("all", "must not be true together with user_id")
	}
	answer, err := s.pruner.Prune(c.Request().Context(), c.caller, library.PruneRequest{UserID: body.UserID, All: body.All, DryRun: body.DryRun})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}
