package rescue

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/events"
)

// Register registers what a dead daemon left. Sessions that were live get the status that
// they are being rescued. Runs of other sessions end. Run directories that no session
// names are removed. left are all run directories; their Chromes have ended.
func (r *Rescues) Register(ctx context.Context, left []*browser.Dir) error {
	dirs := map[string]*browser.Dir{}
	for _, dir := range left {
		dirs[dir.Name()] = dir
	}
	sessions, err := r.unended(ctx)
	if err != nil {
		return err
	}
	for _, rec := range sessions {
		if rec, err = r.cfg.Records.UpdateSession(ctx, rec.ID, func(s *profiles.Session) error {
			if s.Reason.Code != profiles.ReasonBeingRescued { // otherwise an earlier start set it and was killed too
				s.Status, s.Reason = profiles.StatusError, profiles.ReasonBeingRescued.With(BeingRescued)
				s.Notices = r.cfg.Notices.Of(*s, events.HookStatus)
			}
			return nil
		}); err != nil {
			return err
		}
		r.add(rec, dirs[rec.RunDir])
		delete(dirs, rec.RunDir)
	}
	r.cfg.Notices.Wake()
	if err := r.endRuns(ctx, func(sessionID string) bool { return !r.Has(sessionID) }); err != nil {
		return err
	}
	for _, dir := range dirs {
		browsers.Remove(dir, r.cfg.Log)
	}
	return nil
}

// unended lists the sessions whose end was not recorded: the live ones, and those in the
// state error whose data is kept.
func (r *Rescues) unended(ctx context.Context) ([]profiles.Session, error) {
	ran, _, err := r.cfg.Records.Sessions(ctx, profiles.SessionFilter{Live: true})
	if err != nil {
		return nil, err
	}
	failed, _, err := r.cfg.Records.Sessions(ctx, profiles.SessionFilter{Status: profiles.StatusError})
	for _, rec := range failed {
		if rec.EndedAt.IsZero() {
			ran = append(ran, rec)
		}
	}
	return ran, err
}
