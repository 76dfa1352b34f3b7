package save

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/state"
)

// Rescue saves what a Chrome that has ended left, and counts the save as a rescue.
func (s *Saver) Rescue(ctx context.Context, j Job) EndResult {
	e := s.saveProfile(ctx, j)
	s.cfg.Meter.Saved(ForRescue, ResultOf(e.Err))
	return e
}

// saveProfile saves the user data directory of a Chrome that has ended. If its state was not
// read, the last reading takes its place; see [Saver.documentAfterCrash].
func (s *Saver) saveProfile(ctx context.Context, j Job) EndResult {
	doc := j.Document
	if !doc.Complete {
		doc = crashedDocument(j, s.cfg.Now())
	}
	if j.Chrome != nil {
		if err := j.Chrome.Kill(ctx); err != nil {
			return EndResult{Err: Failure(err, "the remaining processes of Chrome could not be ended"), Document: doc}
		}
	}
	if !doc.Complete {
		var from string
		doc, from = s.documentAfterCrash(ctx, j)
		j.Label = rescueLabel(from)
	}
	files, err := s.cfg.Datadirs.Select(ctx, j.Dir.Profile())
	if err != nil {
		return EndResult{Err: Failure(err, ""), Document: doc}
	}
	answer, _, err := s.Keep(ctx, j, doc, files)
	if err != nil {
		return EndResult{Err: Failure(err, ""), Document: doc}
	}
	browsers.Remove(j.Dir, s.cfg.Log)
	return EndResult{Answer: answer, SessionEnded: true}
}

// rescueLabel returns the label of a rescue that takes parts from the reading in a snapshot;
// "" if there is no reading.
func rescueLabel(snapshot string) string {
	if snapshot == "" {
		return ""
	}
	return "completed from snapshot " + snapshot
}

// crashedDocument returns the document of a profile whose Chrome died, before anything of its
// state is known.
func crashedDocument(j Job, now time.Time) state.Document {
	doc := UnreadDocument(j.Session.Engine, now)
	doc.Overrides, doc.Missed = j.Options.Overrides, j.Missed
	return doc
}

// UnreadDocument returns the document of a profile that a Chrome of this engine left and
// whose state was not read over CDP.
func UnreadDocument(engine string, now time.Time) state.Document {
	return state.Document{SchemaVersion: state.SchemaVersion, CapturedAt: now.UTC(), Datadir: state.DatadirCrash,
		Chrome: state.Chrome{Engine: engine}, TabsByURL: engine == browser.EngineShell}
}

// restart starts a Chrome on the profile of a crashed one, which is newer than any
// snapshot. If that fails, it saves the profile and ends the session.
func (s *Saver) restart(ctx context.Context, j Job) EndResult {
	j.Restart = false
	if err := j.Chrome.Kill(ctx); err != nil {
		return s.end(ctx, j)
	}
	doc, from := s.documentAfterCrash(ctx, j)
	again, err := s.Restart(ctx, j.Session, j.Dir, doc, j.Options, AfterCrash)
	if err != nil {
		s.cfg.Log.Error("Chrome crashed and could not be started again; the session ends", "session", j.Session.ID, "error", err)
		j.Document = doc // the Chrome that failed to start may have written to the profile
		j.Label = rescueLabel(from)
		j.Reason = profiles.ReasonNotRestarted.With("Chrome crashed, and could not be started again: " + fault.MessageOf(err))
		return s.end(ctx, j)
	}
	return EndResult{Chrome: again.Chrome, Reopened: &again}
}
