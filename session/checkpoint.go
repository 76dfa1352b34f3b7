package session

import (
	"context"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/queue"
	"github.com/stasisd/stasis/session/save"
)

// CheckpointRequest asks for a snapshot of a session that runs on.
type CheckpointRequest struct {
	SaveAsDefault bool
	Conflict      save.Conflict
	Label         string
	auto          bool // it is the daemon's own, and no use of the session
}

// checkpointing is a checkpoint that is under way.
type checkpointing struct {
	request CheckpointRequest
	waiter  chan<- save.Checkpointed
}

// Checkpoint saves a session that runs on. Pages and clients are not disturbed,
// but that Chrome stands still for some milliseconds. An error has changed nothing.
func (s *Service) Checkpoint(ctx context.Context, by access.Caller, id string, r CheckpointRequest) (save.CheckpointAnswer, error) {
	l, err := s.running(ctx, by, id, access.Drive)
	if err != nil {
		return save.CheckpointAnswer{}, err
	}
	c := l.save(ctx, r)
	s.Journal.Flush(ctx, id) // it is told, whatever becomes of the daemon
	return c.Answer, c.Err
}

// save waits for its turn, one checkpoint after the other, and for the outcome.
// One that has begun goes on when ctx ends.
func (l *live) save(ctx context.Context, r CheckpointRequest) save.Checkpointed {
	const op = "session.checkpoint"
	select {
	case l.turn <- struct{}{}:
	case <-l.done:
		return save.Checkpointed{Err: notRunning(l.id)}
	case <-ctx.Done():
		return save.Checkpointed{Err: fault.Wrap(ctx.Err(), fault.Timeout, op, "another checkpoint of the session was under way")}
	}
	l.awaitRestart(ctx)
	result := make(chan save.Checkpointed, 1)
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
					result <- save.Checkpointed{Err: err}
				}
			},
		})
		return nil
	}); err != nil {
		<-l.turn
		return save.Checkpointed{Err: err}
	}
	select {
	case c := <-result:
		return c
	case <-ctx.Done():
		return save.Checkpointed{Err: fault.Wrap(ctx.Err(), fault.Timeout, op, "the checkpoint goes on; the session's snapshots tell what came of it")}
	}
}

// checkpointJob decides what a checkpoint does with the environment.
func (l *live) checkpointJob(r CheckpointRequest) save.Job {
	j := save.Job{Session: l.rec, Chrome: l.chrome, Options: l.options(), Partial: l.partial,
		Mode: save.Filesystem, GoesOn: true, Label: r.Label, Auto: r.auto}
	if r.SaveAsDefault {
		j.Move = l.moveFrom(r.Conflict)
	}
	if j.Move != nil && j.Partial {
		j.Move, j.NotMoved = nil, partialEnvironment
	}
	return j
}

// beginCheckpoint lends the browser and the last copy to a checkpoint, which
// runs beside the session's goroutine.
func (l *live) beginCheckpoint(c checkpointing, j save.Job) {
	last, lent := l.replica, l.lent
	l.checkpoint, l.replica = &c, nil
	l.svc.work.Go(func() { l.checkpointed <- l.svc.saver.Checkpoint(l.svc.ctx, lent, j, last) })
}

// finishCheckpoint takes a checkpoint's outcome in. An end that has waited for it
// goes on from there.
func (l *live) finishCheckpoint(c save.Checkpointed) {
	was := l.checkpoint
	l.checkpoint, l.replica = nil, c.Replica
	<-l.turn
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
	if !was.request.auto {
		l.touch()
	}
	l.settleFreeze()
	l.power.After(func() { was.waiter <- c }) // a paused session stands still again first
}
