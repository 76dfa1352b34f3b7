package api

import (
	"net/http"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/library"
)

type snapshotsAnswer struct {
	Snapshots []library.SnapshotInfo `json:"snapshots"`
	NextToken *string                `json:"next_token"`
}

func (s *Server) listSnapshots(c *call) error {
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
	page, next, err := s.library.Snapshots(c.Request().Context(), c.caller, id, int(q.Limit), q.StartAfter)
	if err != nil {
		return err
	}
	return c.snapshots(page, next)
}

func (s *Server) allSnapshots(c *call) error {
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
	page, next, err := s.library.AllSnapshots(c.Request().Context(), c.caller, q.UserID, int(q.Limit), q.StartAfter)
	if err != nil {
		return err
	}
	return c.snapshots(page, next)
}

// snapshots answers with a page of them.
func (c *call) snapshots(page []library.SnapshotInfo, next string) error {
	answer := snapshotsAnswer{Snapshots: make([]library.SnapshotInfo, 0, len(page)), NextToken: orNull(next)}
	for _, info := range page {
		answer.Snapshots = append(answer.Snapshots, info.Whole())
	}
	return c.JSON(http.StatusOK, answer)
}

func (s *Server) latestSnapshot(c *call) error {
	id, err := c.sessionID()
	if err != nil {
		return err
	}
	page, _, err := s.library.Snapshots(c.Request().Context(), c.caller, id, 1, "")
	if err != nil {
		return err
	}
	if len(page) == 0 {
		return fault.New(fault.SnapshotNotFound, "api.snapshots", "the session has no snapshot")
	}
	return c.JSON(http.StatusOK, page[0].Whole())
}

func (s *Server) getSnapshot(c *call) error {
	id, err := c.id("snapshot_id", fault.SnapshotNotFound)
	if err != nil {
		return err
	}
	info, err := s.library.Snapshot(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, info.Whole())
}

func (s *Server) diffSnapshots(c *call) error {
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
	diff, err := s.library.Diff(c.Request().Context(), c.caller, from, to, q.Values)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, diff)
}

func (s *Server) deleteSnapshot(c *call) error {
	id, err := c.id("snapshot_id", fault.SnapshotNotFound)
	if err != nil {
		return err
	}
	if err := s.library.DeleteSnapshot(c.Request().Context(), c.caller, id); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) verifySnapshot(c *call) error {
	if _, err := s.body(c, &none{}); err != nil {
		return err
	}
	id, err := c.id("snapshot_id", fault.SnapshotNotFound)
	if err != nil {
		return err
	}
	found, err := s.library.VerifySnapshot(c.Request().Context(), c.caller, id)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, found)
}
