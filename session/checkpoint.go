package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/queue"
	"github.com/stasisd/stasis/state"
)

// checkpointDeadline bounds how long a checkpoint may use the session's Chrome.
const checkpointDeadline = time.Minute

// CheckpointRequest asks for a snapshot of a session that runs on.
type CheckpointRequest struct {
	SaveAsDefault bool
	Conflict      Conflict
	Label         string
	auto          bool // it is the daemon's own, and no use of the session
}

// CheckpointAnswer is the answer of a checkpoint.
type CheckpointAnswer struct {
	Success  bool                 `json:"success"`
	Message  string               `json:"message"`
	Snapshot library.SnapshotInfo `json:"snapshot"`
	Default  *DefaultOutcome      `json:"default"`
	// Unchanged: nothing has changed since the checkpoint that Snapshot is of.
	Unchanged bool `json:"unchanged"`
	// PausedMS is for how long Chrome stood still.
	PausedMS float64 `json:"paused_ms"`
	flaw     string  // what is wrong with it, or with that which it found unchanged
}

// checkpointing is a checkpoint that is under way.
type checkpointing struct {
	request CheckpointRequest
	waiter  chan<- checkpointed
}

// checkpointed is what a checkpoint came to.
type checkpointed struct {
	answer  CheckpointAnswer
	replica *replica // for the next one; nil: it was thrown away
	err     error
}

// Checkpoint saves a session that runs on. Pages and clients are not disturbed,
// but that Chrome stands still for some milliseconds. An error has changed nothing.
func (s *Service) Checkpoint(ctx context.Context, c access.Caller, id string, r CheckpointRequest) (CheckpointAnswer, error) {
	l, err := s.running(ctx, c, id, access.Drive)
	if err != nil {
		return CheckpointAnswer{}, err
	}
	answer, err := l.save(ctx, r)
	s.Journal.Flush(ctx, id) // it is told, whatever becomes of the daemon
	return answer, err
}

// save waits for its turn, one checkpoint after the other, and for the outcome.
// One that has begun goes on when ctx ends.
func (l *live) save(ctx context.Context, r CheckpointRequest) (CheckpointAnswer, error) {
	const op = "session.checkpoint"
	select {
	case l.turn <- struct{}{}:
	case <-l.done:
		return CheckpointAnswer{}, notRunning(l.id)
	case <-ctx.Done():
		return CheckpointAnswer{}, fault.Wrap(ctx.Err(), fault.Timeout, op, "another checkpoint of the session was under way")
	}
	l.awaitRestart(ctx)
	result := make(chan checkpointed, 1)
	if err := l.ask(ctx, func() error {
		l.power.Add(queue.Task{ // not while Chrome is being frozen
			Begin: func() (func(context.Context) error, error) {
				if err := l.usable(); err != nil {
					return nil, err
				}
				if l.request.ReadOnly {
					return nil, fault.New(fault.Unsupported, op, "the session is read_only, and is never saved")
				}
				if !r.auto {
					l.touch()
				}
				l.beginCheckpoint(checkpointing{request: r, waiter: result}, l.checkpointJob(r))
				return nil, nil
			},
			End: func(err error) {
				if err != nil {
					<-l.turn
					result <- checkpointed{err: err}
				}
			},
		})
		return nil
	}); err != nil {
		<-l.turn
		return CheckpointAnswer{}, err
	}
	select {
	case c := <-result:
		return c.answer, c.err
	case <-ctx.Done():
		return CheckpointAnswer{}, fault.Wrap(ctx.Err(), fault.Timeout, op, "the checkpoint goes on; the session's snapshots tell what came of it")
	}
}

// checkpointJob decides what a checkpoint does with the environment.
func (l *live) checkpointJob(r CheckpointRequest) job {
	j := job{rec: l.rec, chrome: l.chrome, source: l.source, again: l.options(), partial: l.partial,
		mode: SaveFilesystem, goesOn: true, label: r.Label, auto: r.auto}
	if r.SaveAsDefault {
		j.move = l.moveFrom(r.Conflict)
	}
	if j.move != nil && j.partial {
		j.move, j.held = nil, partialEnvironment
	}
	return j
}

// beginCheckpoint lends the browser and the last copy to a checkpoint, which
// runs beside the session's goroutine.
func (l *live) beginCheckpoint(c checkpointing, j job) {
	last, lent := l.replica, l.lent
	l.checkpoint, l.replica = &c, nil
	l.svc.work.Go(func() { l.checkpointed <- l.svc.checkpoint(lent, j, last) })
}

// finishCheckpoint takes a checkpoint's outcome in. An end that has waited for it
// goes on from there.
func (l *live) finishCheckpoint(c checkpointed) {
	was := l.checkpoint
	l.checkpoint, l.replica = nil, c.replica
	<-l.turn
	l.tellCheckpoint(c)
	if c.err == nil && c.answer.Default != nil && c.answer.Default.Moved {
		l.rec.BaseVersion = c.answer.Default.Version
	}
	if l.ending != nil {
		was.waiter <- c
		l.carryOut()
		return
	}
	if !was.request.auto {
		l.touch()
	}
	l.settleFreeze()
	l.power.After(func() { was.waiter <- c }) // a paused session stands still again first
}

// checkpoint carries a checkpoint out. While it needs Chrome it ends with lent,
// the context of the session's calls; from then on it outlives Chrome.
func (s *Service) checkpoint(lent context.Context, j job, last *replica) (out checkpointed) {
	r := last
	defer func() {
		switch {
		case out.answer.Unchanged && out.err == nil:
			s.Meter.Saved(j.kind(), SaveUnchanged)
		case !fault.Is(out.err, fault.SessionEnding):
			s.Meter.Saved(j.kind(), saveOutcome(out.err))
		}
	}()
	defer func() {
		switch {
		case r != nil && out.err != nil:
			s.clear(r.dir) // it may be half of something, and takes room
			r = nil
		case r != nil && r.spoilt:
			s.clear(r.dir)
			r = &replica{last: r.last}
		}
		out.replica = r
	}()
	if r == nil || r.dir == nil {
		if r, out.err = s.newReplica(r); out.err != nil {
			out.err = checkpointFailed(out.err)
			return out
		}
	}
	j.dir = r.dir
	ctx, cancel := context.WithTimeout(lent, checkpointDeadline)
	defer cancel()
	m, err := s.catch(ctx, &j, r)
	switch {
	case err != nil && lent.Err() != nil && s.ctx.Err() == nil:
		out.err = takenBack(lent, err, "session.checkpoint")
		return out
	case err != nil:
		out.err = checkpointFailed(err)
		return out
	}
	if out.answer, err = s.keepMoment(s.ctx, j, r, m); err != nil {
		out.err = checkpointFailed(err)
	}
	out.answer.PausedMS = float64(m.stood.Microseconds()) / 1000
	return out
}

func checkpointFailed(err error) error {
	return saveFailed(err, "the checkpoint failed and nothing was stored; the session runs on")
}

// keepMoment stores what was caught, unless the last checkpoint holds just that.
func (s *Service) keepMoment(ctx context.Context, j job, r *replica, m moment) (CheckpointAnswer, error) {
	print := r.print(m.doc, j.notes)
	if r.holds(j, print) && s.stillSo(ctx, j, r, m.doc) {
		answer, err := s.unchanged(ctx, j.flawed(r.last.flaw), r.last.snapshot)
		answer.flaw = r.last.flaw
		if !fault.Is(err, fault.SnapshotNotFound) {
			return answer, err
		}
	}
	files, err := s.Datadirs.Select(ctx, r.dir.Profile())
	if err != nil {
		return CheckpointAnswer{}, err
	}
	kept, flaw, err := s.keep(ctx, j, m.doc, files)
	if err != nil {
		return CheckpointAnswer{}, err
	}
	// What is damaged in a copy that was made anew is so in Chrome's own files.
	r.spoilt, r.anew = flaw == damagedCopy && (r.last == nil || r.last.flaw != damagedCopy), false
	r.last = &saved{print: print, snapshot: kept.Snapshot.ID, label: j.label, auto: j.auto, flaw: flaw}
	return CheckpointAnswer{Success: true, Message: kept.Message, Snapshot: *kept.Snapshot, Default: kept.Default, flaw: flaw}, nil
}

// stillSo reports whether what was wrong with the last checkpoint is wrong with the
// same files now, where that is to be looked at: they were copied anew, or were not
// read and a default waits for it. If not, the checkpoint is made again.
func (s *Service) stillSo(ctx context.Context, j job, r *replica, doc state.Document) bool {
	if r.last.flaw == "" || !r.anew && (r.last.flaw == damagedCopy || j.move == nil) {
		return true
	}
	_, flaw := s.survey(ctx, j, doc)
	switch {
	case flaw == r.last.flaw:
		r.anew = false
	case flaw == "" && r.last.flaw == unreadCopy:
		r.last.flaw = ""
	default:
		return false
	}
	return true
}

// unchanged answers with the snapshot of the last checkpoint, and moves the
// default to it where that is asked for; one that is no more is
// snapshot_not_found.
func (s *Service) unchanged(ctx context.Context, j job, id string) (CheckpointAnswer, error) {
	row, err := s.Catalogue.Snapshot(ctx, id)
	if err != nil {
		return CheckpointAnswer{}, err
	}
	answer := CheckpointAnswer{Success: true, Message: "nothing has changed since the last checkpoint", Unchanged: true,
		Snapshot: library.InfoOf(row, s.Now())}
	switch {
	case j.held != "":
		d, err := s.Catalogue.Default(ctx, row.UserID)
		if err != nil && !fault.Is(err, fault.DefaultNotFound) {
			return answer, err
		}
		answer.Default = &DefaultOutcome{Version: d.Version, Reason: j.held, LoginCheck: j.checked}
	case j.move != nil:
		if answer.Default, err = s.moveTo(ctx, row, *j.move, j.checked); err != nil || !answer.Default.Moved {
			return answer, err
		}
		_, err = s.Catalogue.UpdateSession(ctx, j.rec.ID, func(rec *profiles.Session) error {
			rec.BaseVersion = answer.Default.Version
			return nil
		})
	}
	return answer, err
}
