package rescue

import (
	"context"
	"errors"
	"slices"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/events"
)

// Register registers what a dead daemon left. Sessions that were live get the status that
// they are being rescued. Runs of other sessions end. A node leaves the sessions of other nodes
// alone. Run directories that no session
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
	sessions = slices.DeleteFunc(sessions, func(rec profiles.Session) bool {
		// A session without a node is from before this daemon was one.
		return !r.own(rec) && (rec.NodeID != "" || dirs[rec.RunDir] == nil)
	})
	for _, rec := range sessions {
		if rec, err = r.cfg.Records.UpdateSession(ctx, rec.ID, func(s *profiles.Session) error {
			if r.cfg.NodeID != "" && !r.holds(*s, rec) {
				return errTakenOver
			}
			if s.Reason.Code != profiles.ReasonBeingRescued { // otherwise an earlier start set it and was killed too
				s.Status, s.Reason = profiles.StatusError, profiles.ReasonBeingRescued.With(BeingRescued)
				s.Notices = r.cfg.Notices.Of(*s, events.HookStatus)
			}
			return nil
		}); errors.Is(err, errTakenOver) {
			continue // what is left of it is registered below
		} else if err != nil {
			return err
		}
		r.Add(rec, dirs[rec.RunDir])
		delete(dirs, rec.RunDir)
	}
	if err := r.registerLeft(ctx, dirs); err != nil {
		return err
	}
	r.cfg.Notices.Wake()
	if err := r.endRuns(ctx, func(rec profiles.Session) bool { return r.own(rec) && !r.Has(rec.ID) }); err != nil {
		return err
	}
	for _, dir := range dirs {
		browsers.Remove(dir, r.cfg.Log)
	}
	return nil
}

// own reports whether a session is of this daemon.
func (r *Rescues) own(rec profiles.Session) bool {
	return r.cfg.NodeID == "" || rec.NodeID == r.cfg.NodeID
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
