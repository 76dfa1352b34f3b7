package api

import (
	"context"
	"net/http"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/answer"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
)

// Defaults reads and moves the default environments of users.
type Defaults interface {
	Default(ctx context.Context, c access.Caller, userID string) (library.Default, error)
	SetDefault(ctx context.Context, c access.Caller, userID, snapshotID string, ifVersion *int64) (library.Default, error)
	DeleteDefault(ctx context.Context, c access.Caller, userID string) error
	DefaultHistory(ctx context.Context, c access.Caller, userID string, limit int, startAfter string) (page []library.PastDefault, next string, err error)
}

// Logins checks whether the logins of default environments still work.
type Logins interface {
	CheckDefault(ctx context.Context, c access.Caller, userID string) (login.Outcome, error)
	// LastCheck returns the outcome of the last CheckDefault; nil if there was none.
	LastCheck(ctx context.Context, c access.Caller, userID string) (*login.Outcome, error)
}

var (
	_ Defaults = (*library.Library)(nil)
	_ Logins   = (*login.Checker)(nil)
)

// defaultHandler reads, moves and checks default environments.
type defaultHandler struct {
	defaults Defaults
	logins   Logins
	bodies   *bodyDecoder
}

// defaultAnswer is one version of a user's default environment on the wire.
type defaultAnswer struct {
	UserID     string    `json:"user_id"`
	Version    int64     `json:"version"`
	SnapshotID *string   `json:"snapshot_id"`
	SessionID  *string   `json:"session_id"`
	MovedAt    time.Time `json:"moved_at"`
}

func answerOfDefault(d library.Default) defaultAnswer {
	return defaultAnswer{d.UserID, d.Version, answer.OrNull(d.SnapshotID), answer.OrNull(d.SessionID), d.MovedAt.UTC()}
}

// userID returns the user ID in the path: UTF-8 of 1 to 256 bytes.
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

func (h *defaultHandler) get(c *call) error {
	user, err := c.userID()
	if err != nil {
		return err
	}
	d, err := h.defaults.Default(c.Request().Context(), c.caller, user)
	if err != nil {
		return err
	}
	last, err := h.logins.LastCheck(c.Request().Context(), c.caller, user)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct {
		defaultAnswer
		LastCheck *login.Outcome `json:"last_check"`
	}{answerOfDefault(d), last})
}

func (h *defaultHandler) check(c *call) error {
	if _, err := h.bodies.decode(c, &none{}); err != nil {
		return err
	}
	user, err := c.userID()
	if err != nil {
		return err
	}
	outcome, err := h.logins.CheckDefault(c.Request().Context(), c.caller, user)
	if err != nil {
		return err
	}
	c.audit.Detail = string(outcome.Verdict())
	return c.JSON(http.StatusOK, outcome)
}

func (h *defaultHandler) put(c *call) error {
	var body struct {
		SnapshotID string `json:"snapshot_id"`
		IfVersion  *int64 `json:"if_version"`
	}
	if _, err := h.bodies.decode(c, &body); err != nil {
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
	c.audit.SnapshotID = body.SnapshotID
	d, err := h.defaults.SetDefault(c.Request().Context(), c.caller, user, body.SnapshotID, body.IfVersion)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answerOfDefault(d))
}

func (h *defaultHandler) delete(c *call) error {
	user, err := c.userID()
	if err != nil {
		return err
	}
	if err := h.defaults.DeleteDefault(c.Request().Context(), c.caller, user); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (h *defaultHandler) history(c *call) error {
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
	page, next, err := h.defaults.DefaultHistory(c.Request().Context(), c.caller, user, int(q.Limit), q.StartAfter)
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
	}{make([]past, 0, len(page)), answer.OrNull(next)}
	for _, d := range page {
		answer.History = append(answer.History, past{answerOfDefault(d.Default), d.Available})
	}
	return c.JSON(http.StatusOK, answer)
}
