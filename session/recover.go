package session

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/library/audit"
	"github.com/stasisd/stasis/session/rescue"
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
	byName := map[string]*browser.Dir{}
	for _, dir := range left {
		byName[dir.Name()] = dir
	}
	records, err := s.unended(ctx)
	if err != nil {
		return err
	}
	for _, rec := range records {
		if rec, err = s.Catalogue.UpdateSession(ctx, rec.ID, func(r *profiles.Session) error {
			if r.Reason.Code != profiles.ReasonBeingRescued { // else an earlier start has said so, and was killed too
				r.Status, r.Reason = profiles.StatusError, profiles.ReasonBeingRescued.With(rescue.BeingRescued)
				r.Notices = s.Notices.Of(*r, events.HookStatus)
			}
			return nil
		}); err != nil {
			return err
		}
		s.rescues.Add(rec, byName[rec.RunDir])
		delete(byName, rec.RunDir)
	}
	s.Notices.Wake()
	if err := s.rescues.EndLeft(ctx, func(sessionID string) bool { return !s.rescues.Has(sessionID) }); err != nil {
		return err
	}
	for _, dir := range byName {
		browsers.Remove(dir, s.Log)
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

// unended lists the sessions whose end was not recorded: those that ran, and
// those in error whose data is kept.
func (s *Service) unended(ctx context.Context) ([]profiles.Session, error) {
	ran, _, err := s.Catalogue.Sessions(ctx, profiles.SessionFilter{Live: true})
	if err != nil {
		return nil, err
	}
	failed, _, err := s.Catalogue.Sessions(ctx, profiles.SessionFilter{Status: profiles.StatusError})
	for _, rec := range failed {
		if rec.EndedAt.IsZero() {
			ran = append(ran, rec)
		}
	}
	return ran, err
}
