package save

import (
	"context"
	"errors"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
)

// notRestored is why a session ended whose caches were never restored.
const notRestored = "the caches of its environment could not be restored, so the session ended and was not saved; restore the snapshot again"

// endIncomplete ends a session whose Chrome is gone and whose caches were never restored: the
// archive is damaged, or Chrome crashed before. A save would lose the caches, and no later try
// could save them. failed is the failed ending; other endings pass unchanged.
func (s *Saver) endIncomplete(ctx context.Context, j Job, failed EndResult) EndResult {
	if !errors.Is(failed.Err, browser.ErrIncomplete) || failed.Chrome != nil {
		return failed
	}
	err := s.EndSession(ctx, profiles.End{SessionID: j.Session.ID, Status: profiles.StatusTerminated,
		Reason: profiles.ReasonNotRestored.With(notRestored), EndedAt: s.cfg.Now().UTC()}, j.CrashUnreported)
	if err != nil {
		s.cfg.Log.Error("a session whose caches could not be restored could not be ended; its data is kept", "session", j.Session.ID, "error", err)
		return failed
	}
	browsers.Remove(j.Dir, s.cfg.Log)
	return EndResult{Err: fault.Wrap(failed.Err, fault.SaveFailed, "session.end", notRestored), SessionEnded: true}
}
