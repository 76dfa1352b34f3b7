package session

import (
	"context"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/capacity"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/session/settings"
	"github.com/stasisd/stasis/state"
)

// capacityAdapter is what package capacity needs of a Service.
type capacityAdapter struct{ svc *Service }

// StartSpare starts an empty Chrome to be kept ready.
func (f capacityAdapter) StartSpare(ctx context.Context, engine string) (*restore.Spare, error) {
	return f.svc.restorer.StartSpare(ctx, engine)
}

// StartStandby starts a Chrome that holds a snapshot's environment.
func (f capacityAdapter) StartStandby(ctx context.Context, snap profiles.Snapshot, engine string) (*restore.Standby, error) {
	limits, err := f.svc.users.Egress(ctx, snap.UserID)
	if err != nil {
		return nil, err
	}
	return f.svc.restorer.StartStandby(ctx, snap, engine, limits)
}

// StandbySettings returns a user's settings of standbys of a default.
func (f capacityAdapter) StandbySettings(ctx context.Context, userID string, current profiles.Snapshot) (capacity.StandbySettings, error) {
	set, err := f.svc.users.For(ctx, userID)
	if err != nil || set.Standby == nil {
		return capacity.StandbySettings{}, err
	}
	engine, err := f.svc.resolver.Engine(ctx, request.Create{}, userID, restore.Environment{Snapshot: &current}.Engine())
	if err != nil {
		engine = "" // a create reports that the engine is missing
	}
	return capacity.StandbySettings{Set: true, Count: int(*set.Standby), Engine: engine}, nil
}

// Creating reports whether a create is under way.
func (f capacityAdapter) Creating() bool {
	return f.svc.sessions.Counts().Creating > 0
}

// MemoryAllows reports whether memory allows one more Chrome.
func (f capacityAdapter) MemoryAllows() bool { return f.svc.deps.MemoryAllows() }

// archivesAdapter gives package archives the saver and the rescues, which are created
// after it.
type archivesAdapter struct{ svc *Service }

// Filter removes what a selection excludes from a user data directory.
func (f archivesAdapter) Filter(ctx context.Context, userDataDir string, selection state.Selection) ([]state.Component, error) {
	return f.svc.saver.Filter(ctx, userDataDir, selection)
}

// AwaitRescue waits until a session's data is saved after its Chrome or its daemon has died.
func (f archivesAdapter) AwaitRescue(ctx context.Context, sessionID string) error {
	if l := f.svc.sessions.Find(sessionID); l != nil {
		l.awaitCrash(ctx)
	}
	return f.svc.rescues.Await(ctx, sessionID)
}

// countRestore counts a restore of a default that a standby served or could have served.
func (s *Service) countRestore(r request.Create, o restore.Environment, report *restore.Report) {
	plain := r.RestoreTabs && r.Origins.All() && len(r.Overrides.Names()) == 0 && len(r.Extensions) == 0 && r.Passkeys == nil
	if report != nil && o.Source.Type == restore.SourceUserDefault && report.Path != restore.PathParked && plain {
		s.capacity.CountRestore(o.UserID, r.Engine)
	}
}

// recallStandbys finds the users whose settings request standbys when the daemon starts.
func (s *Service) recallStandbys(ctx context.Context) error {
	if s.cfg.Standby.Size == 0 {
		return nil
	}
	users, err := s.deps.Catalogue.UsersWithSettings(ctx)
	for _, u := range users {
		set, err := settings.Of(u)
		if err != nil {
			s.deps.Log.Warn("cannot read a user's settings; the user gets no standby", "error", err)
			continue
		}
		if settings.ValueOrZero(set.Standby) > 0 {
			s.capacity.SetStandbys(u.ID, true)
		}
	}
	return err
}
