package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/session/events"
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
	s.work.Go(s.janitor)
	if err := s.recallStandbys(ctx); err != nil {
		return err
	}
	if err := s.renewals.Begin(ctx); err != nil {
		return err
	}
	s.capacity.Replenish()
	return nil
}

// sweepEvery is how often what has expired is removed, and pruneEvery how often
// snapshots are held against the policies.
const (
	sweepEvery = 10 * time.Minute
	pruneEvery = time.Hour
)

// janitor removes what has expired, rescue snapshots and recorded answers, and
// what no policy keeps, until the service closes.
func (s *Service) janitor() {
	sweep, prune := time.NewTicker(sweepEvery), time.NewTicker(pruneEvery)
	defer sweep.Stop()
	defer prune.Stop()
	s.sweep(s.ctx)
	s.pruner.PruneAll(s.ctx)
	for {
		select {
		case <-sweep.C:
			s.sweep(s.ctx)
		case <-prune.C:
			s.pruner.PruneAll(s.ctx)
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Service) sweep(ctx context.Context) {
	now := s.Now()
	if err := s.Catalogue.ExpireEvents(ctx, now.Add(-events.KeepFor)); err != nil {
		s.Log.Warn("old events could not be removed", "error", err)
	}
	if err := s.Catalogue.ExpireAnswers(ctx, now.Add(-repeatWindow)); err != nil {
		s.Log.Warn("old answers could not be removed", "error", err)
	}
	if err := s.Catalogue.ExpireDeliveries(ctx, now.Add(-events.KeepDeliveries)); err != nil {
		s.Log.Warn("old deliveries of webhooks could not be removed", "error", err)
	}
	s.pruner.RemoveExpired(ctx)
}
