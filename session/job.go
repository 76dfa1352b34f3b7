package session

import (
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/session/restore"
	"github.com/stasisd/stasis/state"
)

// partialEnvironment is why a default does not move to what a session saves that
// was given only some origins.
const partialEnvironment = "partial_environment"

// job is what the end of a session is to do; it is made on the session's
// goroutine and carried out beside it.
type job struct {
	rec    profiles.Session
	dir    *browser.Dir
	chrome browsers.Chrome // nil when it could not be reopened after a failed save
	doc    state.Document  // what was read of it last: with a nil chrome, or after a restart that failed
	source *restore.Source
	used   bool
	again  browser.Options // of a Chrome that has to be started again
	missed []state.Missed  // of what an earlier daemon knew, what is lost
	laid   time.Time       // when the snapshot that it began with was in place; zero: not known, or none

	// arrived is set where no session ran: the environment comes from elsewhere,
	// and its session's record is made with the snapshot.
	arrived *arrival

	// goesOn: the session does not end with this save, a checkpoint.
	goesOn bool
	auto   bool   // nobody asked for this save
	label  string // of the snapshot

	mode    SaveMode
	origins state.Selection   // whose state is saved
	left    []state.Component // what they kept out of the snapshot
	dead    bool              // Chrome has crashed: only its datadir is left
	rescue  bool
	untold  bool // a crash that webhooks were not told of
	restart bool // instead of a save: its Chrome is started again
	move    *profiles.Move
	// checked is the outcome of the login check that the user asks for before
	// the default moves; where it failed, move is nil.
	checked *LoginOutcome
	// held is why the default does not move although that was asked for.
	held    string
	notes   *restore.Notes  // that go into the snapshot; nil: not looked up, or none
	given   state.Selection // of a rescue: the origins that the session was given
	partial bool            // the session was given only some origins of an environment
	status  profiles.Status
	reason  profiles.Reason
}

// flawed is a job that moves no default where something is wrong with the copy.
func (j job) flawed(flaw string) job {
	if flaw != "" && j.move != nil {
		j.move, j.held = nil, flaw
	}
	return j
}

// job decides what an ending does with the environment.
func (l *live) job(e ending) job {
	j := job{rec: l.rec, dir: l.dir, chrome: l.chrome, doc: l.doc, source: l.source, used: l.used, again: l.options(), partial: l.partial, laid: l.laid,
		mode: SaveFilesystem, status: profiles.StatusTerminated}
	switch e.cause {
	case causeAsked:
		j.mode, j.status, j.origins = e.request.Mode, profiles.StatusCompleted, e.request.Origins
		if e.request.SaveAsDefault {
			j.move = l.moveFrom(e.request.Conflict)
		}
	case causeIdle:
		j.reason, j.rescue = profiles.ReasonIdle.With("idle_timeout"), true
	case causeLifetime:
		j.reason, j.rescue = profiles.ReasonLifetime.With("max_lifetime"), true
	case causeShutdown:
		j.reason, j.rescue = profiles.ReasonShutdown.With("shutdown"), true
	case causeCrash:
		j.status, j.reason, j.rescue, j.dead = profiles.StatusError, e.reason, true, true
		j.restart, j.untold = e.restart, l.untold
	}
	switch {
	case l.request.ReadOnly, e.cause != causeAsked && l.request.DiscardOnEnd:
		j.mode = SaveNone
	case l.request.Persist && !j.dead:
		// However it ends, it is saved and the default moves.
		j.rescue = false
		if j.mode == SaveNone {
			j.mode = SaveFilesystem
		}
		if j.move == nil {
			j.move = l.moveFrom(ConflictKeep)
		}
	}
	// What it was not given would be gone from the default. Who selects anew at
	// the end means that.
	if j.move != nil && j.partial && j.origins.All() {
		j.move, j.held = nil, partialEnvironment
	}
	return j
}

// moveFrom moves the default from where the session began, or moved it itself.
func (l *live) moveFrom(c Conflict) *profiles.Move {
	return &profiles.Move{From: l.rec.BaseVersion, Overwrite: c == ConflictOverwrite, Fresh: l.rec.BaseSnapshotID == ""}
}
