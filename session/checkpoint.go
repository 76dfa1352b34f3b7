package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/queue"
	"github.com/stasisd/stasis/session/request"
	"github.com/stasisd/stasis/session/save"
)

// checkpointing is a checkpoint that is under way.
type checkpointing struct {
	request request.Checkpoint
	waiter  chan<- save.CheckpointResult
}

// Checkpoint saves a session that continues to run. Pages and clients are not disturbed,
// except that Chrome is frozen for some milliseconds. An error has changed nothing.
func (s *Service) Checkpoint(ctx context.Context, by access.Caller, id string, r request.Checkpoint) (save.CheckpointAnswer, error) {
	l, err := s.running(ctx, by, id, access.Drive)
	if err != nil {
		return save.CheckpointAnswer{}, err
	}
	admit, err := s.admission(ctx, l.rights.UserID, l.rights.MadeBy[0])
	if err != nil {
		return save.CheckpointAnswer{}, err
	}
	c := l.save(ctx, r, admit)
	s.deps.Journal.Flush(ctx, id) // its events must survive a crash of the daemon
	return c.Answer, c.Err
}

// save waits for its turn, one checkpoint after the other, and for the outcome. A
// checkpoint that has begun continues when ctx ends. admit may refuse it; nil: it is not
// refused.
func (l *liveSession) save(ctx context.Context, r request.Checkpoint, admit func(user, key profiles.Stored) error) save.CheckpointResult {
	const op = "session.checkpoint"
	select {
	case l.turn <- struct{}{}:
	case <-l.done:
		return save.CheckpointResult{Err: notRunning(l.id)}
	case <-ctx.Done():
		return save.CheckpointResult{Err: fault.Wrap(ctx.Err(), fault.Timeout, op, "another checkpoint of the session is still under way; try again")}
	}
	l.awaitRestart(ctx)
	result := make(chan save.CheckpointResult, 1)
	if err := l.ask(ctx, func() error {
		l.freezeQueue.Add(queue.Task{ // not while Chrome is being frozen
			Begin: func() (func(context.Context) error, error) {
				if err := l.usable(); err != nil {
					return nil, err
				}
				if l.request.ReadOnly {
					return nil, fault.New(fault.Unsupported, op, "the session is read_only and is never saved")
				}
				if !r.Auto {
					l.touch()
				}
				j := l.checkpointJob(r)
				j.Admit = admit
				l.beginCheckpoint(checkpointing{request: r, waiter: result}, j)
				return nil, nil
			},
			End: func(err error) {
				if err != nil {
					<-l.turn
					result <- save.CheckpointResult{Err: err}
				}
			},
		})
		return nil
	}); err != nil {
		<-l.turn
		return save.CheckpointResult{Err: err}
	}
	select {
	case c := <-result:
		return c
	case <-ctx.Done():
		return save.CheckpointResult{Err: fault.Wrap(ctx.Err(), fault.Timeout, op, "the checkpoint is still under way; list the session's snapshots for its outcome")}
	}
}

// checkpointJob decides what a checkpoint does with the environment.
func (l *liveSession) checkpointJob(r request.Checkpoint) save.Job {
	j := save.Job{Session: l.rec, Chrome: l.chrome, Options: l.options(), Partial: l.partial,
		Mode: save.Filesystem, Continues: true, Label: r.Label, Auto: r.Auto, Turns: l.turns}
	if r.SaveAsDefault {
		if j.DefaultAsked = !r.Auto; r.Auto { // persist moves the default, nobody asked
			j.Move = l.moveFromBase()
		} else {
			j.Move = l.moveAsked(r.Conflict)
		}
	}
	if j.Move != nil && j.Partial {
		j.Move, j.NotMoved = nil, partialEnvironment
	}
	return j
}

// beginCheckpoint starts a checkpoint on its own goroutine, with the browser and the last
// replica.
func (l *liveSession) beginCheckpoint(c checkpointing, j save.Job) {
	last, useCtx := l.replica, l.useCtx
	l.checkpoint, l.replica = &c, nil
	l.svc.work.Go(func() { l.checkpointed <- l.svc.saver.Checkpoint(l.ctx, useCtx, j, last) })
}

// finishCheckpoint handles a checkpoint's outcome. An ending that has waited for it
// continues.
func (l *liveSession) finishCheckpoint(c save.CheckpointResult) {
	was := l.checkpoint
	l.checkpoint, l.replica = nil, c.Replica
	<-l.turn
	if c.Err != nil && l.ctx.Err() != nil {
		c.Err = stoppedError(l.svc.ctx, c.Err)
	}
	switch {
	case c.Err != nil:
		l.runs.RecordSaveFailed(c.Err)
	case !c.Answer.Unchanged:
		l.runs.RecordSaved(c.Answer.Snapshot, c.Answer.Default)
	}
	if c.Err == nil && c.Answer.Default != nil && c.Answer.Default.Moved {
		l.rec.BaseVersion = c.Answer.Default.Version
	}
	if l.ending != nil {
		was.waiter <- c
		l.carryOut()
		return
	}
	if !was.request.Auto {
		l.touch()
	}
	l.freezeIfUnused()
	l.freezeQueue.After(func() { was.waiter <- c }) // a paused session is frozen again first
}

// stoppedError is the error of a checkpoint that failed because the session's goroutine must stop:
// the daemon does, whose context has ended then, or another node has taken the session over.
func stoppedError(daemon context.Context, err error) error {
	code := fault.NodeLost
	if daemon.Err() != nil {
		code = fault.ShuttingDown
	}
	return fault.Wrap(err, code, "session.checkpoint", code.Text()+"; the checkpoint was interrupted, and the session's snapshots say whether it was stored")
}
