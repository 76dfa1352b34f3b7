package api

import (
	"net/http"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/library"
)

// defaultAnswer is one version of a user's default environment on the wire.
type defaultAnswer struct {
	UserID     string    `json:"user_id"`
	Version    int64     `json:"version"`
	SnapshotID *string   `json:"snapshot_id"`
	SessionID  *string   `json:"session_id"`
	MovedAt    time.Time `json:"moved_at"`
}

func answerOfDefault(d library.Default) defaultAnswer {
	return defaultAnswer{d.UserID, d.Version, orNull(d.SnapshotID), orNull(d.SessionID), d.MovedAt.UTC()}
}

// userID is the user of the path: any UTF-8 of 1 to 256 bytes.
func (c *call) userID() (string, error) {
	id, err := c.param("user_id")
	if err != nil {
		return "", err
	}
	if id == "" || isUserID("user_id", id) != nil {
		return "", fault.New(fault.UserNotFound, "api.path", "")
	}
	return id, nil
}

func (s *Server) getDefault(c *call) error {
	user, err := c.userID()
	if err != nil {
		return err
	}
	d, err := s.library.Default(c.Request().Context(), c.caller, user)
	if err != nil {
		return err
	}
	last, err := s.service.LastCheck(c.Request().Context(), c.caller, user)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct {
		defaultAnswer
		LastCheck *session.LoginOutcome `json:"last_check"`
	}{answerOfDefault(d), last})
}

func (s *Server) checkDefault(c *call) error {
	if _, err := s.body(c, &none{}); err != nil {
		return err
	}
	user, err := c.userID()
	if err != nil {
		return err
	}
	outcome, err := s.service.CheckDefault(c.Request().Context(), c.caller, user)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, outcome)
}

func (s *Server) putDefault(c *call) error {
	var body struct {
		SnapshotID string `json:"snapshot_id"`
		IfVersion  *int64 `json:"if_version"`
	}
	if _, err := s.body(c, &body); err != nil {
		return err
	}
	if body.SnapshotID == "" {
		return invalid("snapshot_id", "is required")
	}
	if body.IfVersion != nil && *body.IfVersion < 0 {
		return invalid("if_version", "must be 0 or more")
	}
	if err := isID("snapshot_id", body.SnapshotID); err != nil {
		return err
	}
	user, err := c.userID()
	if err != nil {
		return err
	}
	d, err := s.library.SetDefault(c.Request().Context(), c.caller, user, body.SnapshotID, body.IfVersion)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answerOfDefault(d))
}

func (s *Server) deleteDefault(c *call) error {
	user, err := c.userID()
	if err != nil {
		return err
	}
	if err := s.library.DeleteDefault(c.Request().Context(), c.caller, user); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) defaultHistory(c *call) error {
	q := firstPage()
	if err := c.query(&q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	user, err := c.userID()
	if err != nil {
		return err
	}
	page, next, err := s.library.DefaultHistory(c.Request().Context(), c.caller, user, int(q.Limit), q.StartAfter)
	if err != nil {
		return err
	}
	type past struct {
		defaultAnswer
		Available bool `json:"available"`
	}
	answer := struct {
		History   []past  `json:"history"`
		NextToken *string `json:"next_token"`
	}{make([]past, 0, len(page)), orNull(next)}
	for _, d := range page {
		answer.History = append(answer.History, past{answerOfDefault(d.Default), d.Available})
	}
	return c.JSON(http.StatusOK, answer)
}
