package library

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
)

// Default is one version of a user's default environment.
type Default struct {
	UserID     string
	Version    int64
	SnapshotID string // "": the default was removed
	SessionID  string // the session whose save moved it; "" for a PUT
	MovedAt    time.Time
}

func defaultOf(d profiles.Default) Default {
	return Default{d.UserID, d.Version, d.SnapshotID, d.SessionID, d.MovedAt.UTC()}
}

// PastDefault is a version of a default in its history.
type PastDefault struct {
	Default
	Available bool // its snapshot still exists
}

// Default returns a user's current default environment.
func (l *Library) Default(ctx context.Context, c access.Caller, userID string) (Default, error) {
	if err := c.ForUser(userID, access.Look); err != nil {
		return Default{}, err
	}
	d, err := l.defaults.Default(ctx, userID)
	if err != nil {
		return Default{}, err
	}
	return defaultOf(d), nil
}

// SetDefault makes a snapshot the user's default. With ifVersion it does so only if that
// is the current version. A rollback is a SetDefault of an older snapshot. A snapshot
// that is incomplete in the store is refused with the error of its restore, because the
// current default works.
func (l *Library) SetDefault(ctx context.Context, c access.Caller, userID, snapshotID string, ifVersion *int64) (Default, error) {
	if err := c.ForUser(userID, access.Manage); err != nil {
		return Default{}, err
	}
	snap, err := l.records.Snapshot(ctx, snapshotID)
	if err != nil {
		return Default{}, err
	}
	if snap.UserID != userID {
		if !c.MayActFor(snap.UserID) {
			return Default{}, errNoSnapshot("library.default")
		}
		return Default{}, fault.New(fault.UserMismatch, "library.default", "snapshot_id: belongs to another user; name a snapshot of this user")
	}
	if err := l.snapshots.stored(ctx, snap); err != nil {
		return Default{}, err
	}
	defer l.sessions.DefaultChanged()
	d, err := l.defaults.SetDefault(ctx, userID, snapshotID, ifVersion, l.now().UTC())
	return defaultOf(d), err
}

// DeleteDefault leaves the user without a default environment. The snapshot
// and the history stay.
func (l *Library) DeleteDefault(ctx context.Context, c access.Caller, userID string) error {
	if err := c.ForUser(userID, access.Manage); err != nil {
		return err
	}
	defer l.sessions.DefaultChanged()
	_, err := l.defaults.SetDefault(ctx, userID, "", nil, l.now().UTC())
	return err
}

// DefaultHistory lists the versions of a user's default, newest first, and returns
// the cursor of the next page.
func (l *Library) DefaultHistory(ctx context.Context, c access.Caller, userID string, limit int, startAfter string) ([]PastDefault, string, error) {
	if err := c.ForUser(userID, access.Look); err != nil {
		return nil, "", err
	}
	page, next, err := l.defaults.DefaultHistory(ctx, userID, limit, startAfter)
	history := make([]PastDefault, 0, len(page))
	for _, d := range page {
		history = append(history, PastDefault{defaultOf(d.Default), d.Available})
	}
	return history, next, err
}
