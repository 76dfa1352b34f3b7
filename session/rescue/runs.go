package rescue

import (
	"context"
	"encoding/json"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/save"
)

// endRuns ends the runs that a dead daemon left open, for the sessions that of selects.
// The session's record decides how. If a rescue ended the session, perhaps in an earlier
// start that was interrupted, the run gets an event for the rescue's snapshot. Otherwise
// only the end of the run was not recorded.
func (r *Rescues) endRuns(ctx context.Context, of func(profiles.Session) bool) error {
	open, err := r.cfg.Records.OpenRuns(ctx)
	if err != nil {
		return err
	}
	for _, run := range open {
		rec, err := r.cfg.Records.Session(ctx, run.SessionID)
		if err != nil {
			return err
		}
		if !of(rec) {
			continue
		}
		now := r.cfg.Now().UTC()
		end := profiles.RunEnd{RunID: run.ID, Status: profiles.RunFailed, Cause: Killed, EndedAt: now}
		switch {
		case rec.Reason.Code.Killed():
			var outcome save.EndAnswer
			if json.Unmarshal(rec.Outcome, &outcome) == nil && outcome.Snapshot != nil {
				end.Last = append(end.Last, profiles.Event{Type: events.Saved, At: now, Data: profiles.JSON(map[string]any{"snapshot_id": outcome.Snapshot.ID, "rescue": true})})
			}
		case rec.Status == profiles.StatusCompleted:
			end.Status, end.Cause = profiles.RunCompleted, profiles.CauseRequested
		case rec.Status == profiles.StatusTerminated:
			end.Status, end.Cause = profiles.RunCancelled, rec.Reason.Text
		case rec.Reason.Code != "":
			end.Cause = rec.Reason.Text
		}
		end.Last = append(end.Last, events.EndedEvent(end.Status, end.Cause, now))
		if _, err := r.cfg.Records.EndRun(ctx, end, events.Keep); err != nil {
			return err
		}
	}
	return nil
}
