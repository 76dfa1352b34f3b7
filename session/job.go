package session

import (
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/save"
)

// partialEnvironment is the reason why a default does not move to a save of a session
// that was given only some origins.
const partialEnvironment = "partial_environment"

// job decides what an ending does with the environment.
func (l *liveSession) job(e ending) save.Job {
	j := save.Job{Session: l.rec, Dir: l.dir, Chrome: l.chrome, Document: l.doc, Used: l.used, Options: l.options(), Partial: l.partial, RestoredAt: l.restoredAt,
		Mode: save.Filesystem, Status: profiles.StatusTerminated}
	switch e.cause {
	case causeRequested:
		j.Mode, j.Status, j.Origins = e.request.Mode, profiles.StatusCompleted, e.request.Origins
		j.Undoable = !l.request.ReadOnly
		if e.request.SaveAsDefault {
			j.Move, j.DefaultAsked = l.moveAsked(e.request.Conflict), true
		}
	case causeIdle:
		j.Reason, j.Rescue = profiles.ReasonIdle.With("idle_timeout"), true
	case causeLifetime:
		j.Reason, j.Rescue = profiles.ReasonLifetime.With("max_lifetime"), true
	case causeShutdown:
		j.Reason, j.Rescue = profiles.ReasonShutdown.With("shutdown"), true
	case causeMove:
		j.Reason, j.Rescue, j.Paused = profiles.ReasonMoved.With("another node continues the session"), true, l.paused
		j.Hold = l.svc.left.hold
	case causeLimit:
		// What filled the disk would fill the store too, and could hardly be restored.
		j.Mode, j.Status, j.Reason = save.None, profiles.StatusError, e.reason
	case causeCrash:
		j.Status, j.Reason, j.Rescue, j.Dead = profiles.StatusError, e.reason, true, true
		j.Restart, j.CrashUnreported = e.restart, l.crashUnreported
	}
	switch {
	case l.request.ReadOnly, e.cause != causeRequested && l.request.DiscardOnEnd:
		j.Mode = save.None
	case l.request.Persist && !j.Dead && e.cause != causeLimit:
		// However the session ends, it is saved and the default moves.
		j.Rescue = false
		if j.Mode == save.None {
			j.Mode = save.Filesystem
		}
		if j.Move == nil {
			j.Move = l.moveFromBase()
		}
	}
	// The default would lose the origins that the session was not given. A caller that
	// selects origins at the end accepts that.
	if j.Move != nil && j.Partial && j.Origins.All() {
		j.Move, j.NotMoved = nil, partialEnvironment
	}
	return j
}

// moveFromBase returns the move of the default from the version the session began with, or
// has moved it to.
func (l *liveSession) moveFromBase() *profiles.Move {
	return &profiles.Move{From: l.rec.BaseVersion, Fresh: l.rec.BaseSnapshotID == ""}
}

// moveAsked returns the move that a caller asked for. Only a session that started from the
// default can conflict with a later version of it.
func (l *liveSession) moveAsked(c save.Conflict) *profiles.Move {
	m := l.moveFromBase()
	m.Overwrite = c == save.Overwrite || !l.rec.FromDefault
	return m
}
