package api

import (
	"context"
	"net/http"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/library"
)

// Snapshots lists, verifies, compares and deletes stored snapshots.
type Snapshots interface {
	Snapshots(ctx context.Context, c access.Caller, sessionID string, limit int, startAfter string) (page []library.SnapshotInfo, next string, err error)
	// AllSnapshots lists the snapshots of a user; userID "" means all users that the caller
	// may act for.
	AllSnapshots(ctx context.Context, c access.Caller, userID string, limit int, startAfter string) (page []library.SnapshotInfo, next string, err error)
	Snapshot(ctx context.Context, c access.Caller, id string) (library.SnapshotInfo, error)
	DeleteSnapshot(ctx context.Context, c access.Caller, id string) error
	// VerifySnapshot returns an error only if the snapshot could not be examined.
	VerifySnapshot(ctx context.Context, c access.Caller, id string) (library.VerifyResult, error)
	Diff(ctx context.Context, c access.Caller, from, to string, values bool) (library.Diff, error)
}

var _ Snapshots = (*library.Library)(nil)

// snapshotHandler lists, verifies, compares and removes snapshots.
type snapshotHandler struct {
	snapshots Snapshots
	pruner    Pruner
	bodies    *bodyDecoder
}

type snapshotsAnswer struct {
	Snapshots []library.SnapshotInfo `json:"snapshots"`
	NextToken *string                `json:"next_token"`
}

func (h *snapshotHandler) list(c *call) error {
	q := firstPage()
	if err := c.query(&q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	page, next, err := h.snapshots.Snapshots(c.Request().Context(), c.caller, id, int(q.Limit), q.StartAfter)
	if err != nil {
		return err
	}
	return c.snapshots(page, next)
}

func (h *snapshotHandler) listAll(c *call) error {
	q := struct {
		UserID string `json:"user_id"`
		listing
	}{listing: firstPage()}
	if err := c.query(&q); err != nil {
		return err
	}
	if err := firstOf(isUserID("user_id", q.UserID), q.check()); err != nil {
		return err
	}
	c.audit.listing(c, q.UserID)
	page, next, err := h.snapshots.AllSnapshots(c.Request().Context(), c.caller, q.UserID, int(q.Limit), q.StartAfter)
	if err != nil {
		return err
	}
	return c.snapshots(page, next)
}

// snapshots answers with a page of snapshots.
func (c *call) snapshots(page []library.SnapshotInfo, next string) error {
	answer := snapshotsAnswer{Snapshots: make([]library.SnapshotInfo, 0, len(page)), NextToken: answer.OrNull(next)}
	for _, info := range page {
		answer.Snapshots = append(answer.Snapshots, info.Normalized())
	}
	return c.JSON(http.StatusOK, answer)
}

func (h *snapshotHandler) latest(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	page, _, err := h.snapshots.Snapshots(c.Request().Context(), c.caller, id, 1, "")
	if err != nil {
		return err
	}
	if len(page) == 0 {
		return fault.New(fault.SnapshotNotFound, "api.snapshots", "the session has no snapshot")
	}
	return c.JSON(http.StatusOK, page[0].Normalized())
}

func (h *snapshotHandler) get(c *call) error {
	id, err := c.id("snapshot_id", fault.SnapshotNotFound)
	if err != nil {
		return err
	}
	info, err := h.snapshots.Snapshot(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, info.Normalized())
}

func (h *snapshotHandler) diff(c *call) error {
	from, err := c.id("snapshot_id", fault.SnapshotNotFound)
	if err != nil {
		return err
	}
	to, err := c.id("other_id", fault.SnapshotNotFound)
	if err != nil {
		return err
	}
	var q struct {
		Values bool `json:"values"`
	}
	if err := c.query(&q); err != nil {
		return err
	}
	if q.Values {
		c.audit.secrets()
	}
	diff, err := h.snapshots.Diff(c.Request().Context(), c.caller, from, to, q.Values)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, diff)
}

func (h *snapshotHandler) delete(c *call) error {
	id, err := c.id("snapshot_id", fault.SnapshotNotFound)
	if err != nil {
		return err
	}
	if err := h.snapshots.DeleteSnapshot(c.Request().Context(), c.caller, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (h *snapshotHandler) verify(c *call) error {
	if _, err := h.bodies.decode(c, &none{}); err != nil {
		return err
	}
	id, err := c.id("snapshot_id", fault.SnapshotNotFound)
	if err != nil {
		return err
	}
	found, err := h.snapshots.VerifySnapshot(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, found)
}
