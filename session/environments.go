package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
)

// Default tells a user's current default environment.
func (s *Service) Default(ctx context.Context, c access.Caller, userID string) (DefaultInfo, error) {
	if err := c.ForUser(userID, access.Look); err != nil {
		return DefaultInfo{}, err
	}
	d, err := s.Catalogue.Default(ctx, userID)
	if err != nil {
		return DefaultInfo{}, err
	}
	last, err := s.lastCheck(ctx, userID)
	return DefaultInfo{Default: defaultOf(d), LastCheck: last}, err
}

// SetDefault makes a snapshot the user's default; with ifVersion only from
// that version. A rollback is a SetDefault of an older snapshot. One that the
// store does not have whole is refused as its restore would be: a default that
// works would be left for one that does not.
func (s *Service) SetDefault(ctx context.Context, c access.Caller, userID, snapshotID string, ifVersion *int64) (Default, error) {
	if err := c.ForUser(userID, access.Manage); err != nil {
		return Default{}, err
	}
	snap, err := s.Catalogue.Snapshot(ctx, snapshotID)
	if err != nil {
		return Default{}, err
	}
	if snap.UserID != userID {
		if !c.MayActFor(snap.UserID) {
			return Default{}, fault.New(fault.SnapshotNotFound, "session.default", "there is no snapshot %s", snapshotID)
		}
		return Default{}, fault.New(fault.UserMismatch, "session.default", "snapshot_id: the snapshot belongs to another user")
	}
	if err := s.stored(ctx, snap); err != nil {
		return Default{}, err
	}
	defer s.capacity.DefaultChanged()
	d, err := s.Catalogue.SetDefault(ctx, userID, snapshotID, ifVersion, s.Now().UTC())
	return defaultOf(d), err
}

// stored is an error where a snapshot's document does not open, or its archive is
// not there in the length that was saved. The archive is not read: that is what
// a verification is for.
func (s *Service) stored(ctx context.Context, row profiles.Snapshot) error {
	const op = "session.stored"
	saved, err := s.Vault.Open(ctx, library.LocationOf(row.UserID, row.SessionID), row.ID)
	switch {
	case fault.Is(err, fault.SnapshotNotFound):
		return fault.Wrap(err, fault.SnapshotNotFound, op, "snapshot "+row.ID+" is gone from the store: its document is missing")
	case err != nil:
		return err
	case saved.Archive.ID != row.ArchiveID:
		return fault.New(fault.ArchiveDamaged, op, "snapshot %s: its document and the catalogue name different archives", row.ID)
	}
	return s.Vault.Stored(ctx, saved)
}

// DeleteDefault leaves the user without a default environment. The snapshot
// and the history stay.
func (s *Service) DeleteDefault(ctx context.Context, c access.Caller, userID string) error {
	if err := c.ForUser(userID, access.Manage); err != nil {
		return err
	}
	defer s.capacity.DefaultChanged()
	_, err := s.Catalogue.SetDefault(ctx, userID, "", nil, s.Now().UTC())
	return err
}

// DefaultHistory lists the versions of a user's default, newest first, and gives
// the cursor of the next page.
func (s *Service) DefaultHistory(ctx context.Context, c access.Caller, userID string, limit int, startAfter string) ([]PastDefault, string, error) {
	if err := c.ForUser(userID, access.Look); err != nil {
		return nil, "", err
	}
	page, next, err := s.Catalogue.DefaultHistory(ctx, userID, limit, startAfter)
	return each(page, func(d profiles.PastDefault) PastDefault { return PastDefault{defaultOf(d.Default), d.Available} }), next, err
}

// Snapshots lists a session's snapshots, newest first, and gives the cursor of
// the next page.
func (s *Service) Snapshots(ctx context.Context, c access.Caller, sessionID string, limit int, startAfter string) ([]library.SnapshotInfo, string, error) {
	if _, err := s.record(ctx, c, sessionID, access.Look); err != nil {
		return nil, "", err
	}
	return s.snapshotPage(ctx, profiles.SnapshotFilter{SessionID: sessionID, Limit: limit, StartAfter: startAfter})
}

// AllSnapshots lists a user's snapshots over all sessions, newest first; where
// none is named, those of everybody that the caller may act for.
func (s *Service) AllSnapshots(ctx context.Context, c access.Caller, userID string, limit int, startAfter string) ([]library.SnapshotInfo, string, error) {
	if err := c.Require(access.Look); err != nil {
		return nil, "", err
	}
	if userID == "" && !c.ForEveryUser() {
		userID = c.UserID
	}
	if userID != "" && !c.MayActFor(userID) {
		return []library.SnapshotInfo{}, "", nil
	}
	return s.snapshotPage(ctx, profiles.SnapshotFilter{UserID: userID, Limit: limit, StartAfter: startAfter})
}

func (s *Service) snapshotPage(ctx context.Context, f profiles.SnapshotFilter) ([]library.SnapshotInfo, string, error) {
	rows, next, err := s.Catalogue.Snapshots(ctx, f)
	if err != nil {
		return nil, "", err
	}
	page := make([]library.SnapshotInfo, 0, len(rows))
	for _, row := range rows {
		page = append(page, library.InfoOf(row, s.Now()))
	}
	return page, next, nil
}

// Snapshot tells of one snapshot.
func (s *Service) Snapshot(ctx context.Context, c access.Caller, id string) (library.SnapshotInfo, error) {
	row, err := s.ownSnapshot(ctx, c, id, access.Look)
	return library.InfoOf(row, s.Now()), err
}

// ownSnapshot is a snapshot of a user that the caller may act for.
func (s *Service) ownSnapshot(ctx context.Context, c access.Caller, id string, p access.Permission) (profiles.Snapshot, error) {
	if err := c.Require(p); err != nil {
		return profiles.Snapshot{}, err
	}
	row, err := s.Catalogue.Snapshot(ctx, id)
	if err == nil && !c.MayActFor(row.UserID) {
		return profiles.Snapshot{}, fault.New(fault.SnapshotNotFound, "session.snapshot", "there is no snapshot %s", id)
	}
	return row, err
}

// DeleteSnapshot removes a snapshot; one that is a user's default, or is being
// read, is snapshot_in_use. A Chrome that is parked with it is ended.
func (s *Service) DeleteSnapshot(ctx context.Context, c access.Caller, id string) error {
	row, err := s.ownSnapshot(ctx, c, id, access.Manage)
	if err != nil {
		return err
	}
	return s.snapshots.Delete(ctx, row)
}
