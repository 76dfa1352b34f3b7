package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/snapshot"
)

// resolve finds what a create is to restore. Sources of lower rank than the
// first one named are not looked at. What the caller may not act for is not
// found.
func (s *Service) resolve(ctx context.Context, c access.Caller, r Create) (restore.Environment, error) {
	const op = "session.resolve"
	var o restore.Environment
	source, snap, version, err := s.lookUp(ctx, c, r)
	switch {
	case err == nil && source != nil:
		o.Source, o.Snapshot, o.UserID = source, snap, snap.UserID
		if r.UserID != "" && r.UserID != snap.UserID {
			return o, fault.New(fault.UserMismatch, op, "user_id is not the user of the environment to restore")
		}
	case err == nil:
	case r.FreshIfNone && missing(err):
		// A fresh start is the same user's: what it saves is to be found there.
		if o.UserID = s.sourceUser(ctx, c, r); o.UserID != "" && r.UserID != "" && o.UserID != r.UserID {
			return o, fault.New(fault.UserMismatch, op, "user_id is not the user of the environment to restore")
		}
	default:
		return o, err
	}
	if o.Source == nil {
		for _, userID := range []string{r.UserID, c.UserID} {
			if o.UserID == "" {
				o.UserID = userID
			}
		}
		if !c.MayActFor(o.UserID) {
			return o, fault.New(fault.Forbidden, op, "the key does not act for this user")
		}
	}
	if version != 0 {
		o.Version = version
		return o, nil
	}
	d, err := s.Catalogue.Default(ctx, o.UserID)
	if fault.Is(err, fault.DefaultNotFound) {
		return o, nil
	}
	o.Version = d.Version
	return o, err
}

// sourceUser is whose environment a create asks for that is not there; "" where
// nothing tells.
func (s *Service) sourceUser(ctx context.Context, c access.Caller, r Create) string {
	id := r.FromSession
	if id == "" {
		id = r.FromEnvironment
	}
	if id == "" {
		return r.FromDefaultOf
	}
	rec, err := s.Catalogue.Session(ctx, id)
	if err != nil || !c.MayActFor(rec.UserID) {
		return ""
	}
	return rec.UserID
}

// missing reports whether an error says that there is nothing to restore.
func missing(err error) bool {
	return fault.Is(err, fault.NoSnapshot) || fault.Is(err, fault.SnapshotNotFound)
}

// lookUp finds the first source that is named; nil where none is. version is
// that of the default, where the source is one.
func (s *Service) lookUp(ctx context.Context, c access.Caller, r Create) (source *restore.Source, snap *profiles.Snapshot, version int64, err error) {
	switch {
	case r.FromSession != "":
		snap, err = s.newestOf(ctx, c, r.FromSession)
		if err == nil && r.FromSession == r.SessionID { // it is a resume
			*snap, err = s.renewed(ctx, *snap)
		}
		return &restore.Source{Type: restore.SourceSession, ID: r.FromSession}, snap, 0, err
	case r.FromEnvironment != "":
		snap, err = s.environment(ctx, c, r.FromEnvironment)
		return &restore.Source{Type: restore.SourceEnvironment, ID: r.FromEnvironment}, snap, 0, err
	case r.FromDefaultOf != "":
		snap, version, err = s.defaultOf(ctx, c, r.FromDefaultOf)
		return &restore.Source{Type: restore.SourceUserDefault, ID: r.FromDefaultOf}, snap, version, err
	default:
		return nil, nil, 0, nil
	}
}

// environment is the snapshot of that ID, or the one that the session of that
// ID stands for.
func (s *Service) environment(ctx context.Context, c access.Caller, id string) (*profiles.Snapshot, error) {
	snap, err := s.Catalogue.Snapshot(ctx, id)
	switch {
	case fault.Is(err, fault.SnapshotNotFound):
		return s.newestOf(ctx, c, id)
	case err != nil:
		return nil, err
	case !c.MayActFor(snap.UserID):
		return nil, noSuchEnvironment()
	}
	return &snap, nil
}

func noSuchEnvironment() error {
	return fault.New(fault.SnapshotNotFound, "session.resolve", "there is no such session or snapshot to restore from")
}

// newestOf is the snapshot that a session stands for.
func (s *Service) newestOf(ctx context.Context, c access.Caller, id string) (*profiles.Snapshot, error) {
	rec, err := s.Catalogue.Session(ctx, id)
	if fault.Is(err, fault.SessionNotFound) || err == nil && !c.MayActFor(rec.UserID) {
		return nil, noSuchEnvironment()
	}
	if err != nil {
		return nil, err
	}
	if err := s.rescues.await(ctx, id); err != nil {
		return nil, err
	}
	snap, err := s.soundest(ctx, id)
	if fault.Is(err, fault.NoSnapshot) {
		return nil, fault.New(fault.NoSnapshot, "session.resolve",
			"session %s was never saved; end it with save_snapshot_mode, or create with if_missing=fresh", id)
	}
	return &snap, err
}

func (s *Service) defaultOf(ctx context.Context, c access.Caller, userID string) (*profiles.Snapshot, int64, error) {
	if !c.MayActFor(userID) {
		return nil, 0, noSuchEnvironment()
	}
	d, err := s.Catalogue.Default(ctx, userID)
	if fault.Is(err, fault.DefaultNotFound) {
		return nil, 0, fault.New(fault.NoSnapshot, "session.resolve",
			"the user has no default environment; save one with save_as_default=true, or create with if_missing=fresh")
	}
	if err != nil {
		return nil, 0, err
	}
	snap, err := s.Catalogue.Snapshot(ctx, d.SnapshotID)
	if fault.Is(err, fault.SnapshotNotFound) {
		// The default has moved meanwhile, and the one before was removed.
		if now, nerr := s.Catalogue.Default(ctx, userID); nerr == nil && now.Version != d.Version {
			return s.defaultOf(ctx, c, userID)
		}
	}
	return &snap, d.Version, err
}

// locationOf is where a snapshot's bytes are.
func locationOf(userID, sessionID string) snapshot.Location {
	return snapshot.Location{Owner: profiles.OwnerOf(userID), Session: sessionID, Scope: "agent", ScopeID: "browser"}
}
