package session

import (
	"context"

	"github.com/stasisd/stasis/session/library/audit"
)

// Recover makes good what a dead daemon left: it ends Chromes that still run,
// and takes up the sessions that were live. It runs before the first request and
// returns before those are rescued: their datadirs are saved as rescue snapshots
// behind it (see [rescue.Rescues]), and the sessions say so meanwhile. From then on a
// janitor removes what expires, spares and standbys are kept, and logins are kept
// alive. Where catalogue, store and keys do not belong together it logs that, and goes on.
func (s *Service) Recover(ctx context.Context) error {
	if err := s.Catalogue.DropUnfinishedAnswers(ctx); err != nil {
		return err
	}
	audit.LogMismatch(ctx, s.Vault, s.Catalogue, s.Catalogue, s.Log) // before a rescue, whose snapshot would open with a wrong key
	left, err := s.Browsers.Left(ctx)
	if err != nil {
		return err
	}
	if err := s.rescues.TakeUp(ctx, left); err != nil {
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
