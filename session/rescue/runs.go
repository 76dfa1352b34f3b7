package rescue

import (
	"context"
	"encoding/json"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/save"
)

// endLeft ends the runs of some sessions that a dead daemon left open, as their records
// tell. A rescue has ended those that it left live, perhaps by a start that was
// cut short after it, and what was saved of them is told; of others only the run's
// own end was not recorded any more.
func (r *Rescues) endLeft(ctx context.Context, of func(sessionID string) bool) error {
	open, err := r.cfg.Records.OpenRuns(ctx)
	if err != nil {
		return err
	}
	for _, run := range open {
		if !of(run.SessionID) {
			continue
		}
		rec, err := r.cfg.Records.Session(ctx, run.SessionID)
		if err != nil {
			return err
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
			end.Status, end.Cause = profiles.RunCompleted, profiles.CauseAsked
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
