package save

import (
	"context"
	"errors"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
)

// endIncomplete ends a session whose Chrome is gone and whose environment was never complete:
// the caches that a restore unpacks last are damaged, or Chrome crashed before they were in
// place. A save would lose them, and no later try could save them. So the snapshot that the
// session was restored from stays the last one. failed is the failed ending; other endings
// pass unchanged.
func (s *Saver) endIncomplete(ctx context.Context, j Job, failed EndResult) EndResult {
	if !errors.Is(failed.Err, browser.ErrIncomplete) || failed.Chrome != nil {
		return failed
	}
	err := s.EndSession(ctx, profiles.End{SessionID: j.Session.ID, Status: profiles.StatusTerminated,
		Reason:  profiles.ReasonNotRestored.With("its caches could not be restored, so it ended and was not saved; the snapshot that it was restored from is unchanged"),
		EndedAt: s.cfg.Now().UTC()}, j.CrashUnreported)
	if err != nil {
		s.cfg.Log.Error("a session whose caches could not be restored could not be ended; its data is kept", "session", j.Session.ID, "error", err)
		return failed
	}
	browsers.Remove(j.Dir, s.cfg.Log)
	return EndResult{Err: failed.Err, SessionEnded: true}
}
