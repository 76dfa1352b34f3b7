package session

import (
	"context"

	"github.com/stasisd/stasis/session/library/audit"
)

// Recover handles what a dead daemon left. It ends Chromes that still run, and takes over
// the sessions that were live. It runs before the first request. It does not wait until
// those sessions are saved: [rescue.Rescues] saves their user data directories as rescue
// snapshots in the background, and the sessions say so meanwhile. From then on a janitor
// removes what expires, spares and standbys are kept, and logins are renewed. If
// catalogue, store and keys do not match, Recover logs that and continues.
func (s *Service) Recover(ctx context.Context) error {
	if err := s.deps.Catalogue.DropUnfinishedAnswers(ctx); err != nil {
		return err
	}
	audit.LogMismatch(ctx, s.deps.Vault, s.deps.Catalogue, s.deps.Catalogue, s.deps.Log) // before a rescue, which would save with a wrong key
	left, err := s.deps.Browsers.EndOrphans(ctx)
	if err != nil {
		return err
	}
	if err := s.rescues.Register(ctx, left); err != nil {
		return err
	}
	s.rescues.Begin()
	s.work.Go(func() { s.janitor.Run(s.ctx) })
	if err := s.recallStandbys(ctx); err != nil {
		return err
	}
	if err := s.renewals.Begin(ctx); err != nil {
		return err
	}
	s.capacity.Replenish()
	return nil
}
