package session

import (
	"context"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/agent"
	"github.com/stasisd/stasis/session/queue"
)

// agentAdapter gives package agent a live session.
type agentAdapter struct{ l *liveSession }

var _ agent.Live = agentAdapter{}

// AwaitRestart waits while the session's Chrome is started again.
func (d agentAdapter) AwaitRestart(ctx context.Context) { d.l.awaitRestart(ctx) }

// State returns the session's current state.
func (d agentAdapter) State(ctx context.Context) (now agent.State, err error) {
	err = d.l.ask(ctx, func() error {
		now = d.l.agentState()
		return nil
	})
	return now, err
}

// Update runs an update after those that wait.
func (d agentAdapter) Update(ctx context.Context, u agent.Update) error {
	l := d.l
	defer l.svc.deps.Journal.Flush(ctx, l.id)
	return l.askAndWait(ctx, func(reply func(error)) {
		var (
			effect  agent.Effect
			written bool
		)
		l.recordQueue.Add(queue.Task{
			Begin: func() (func(context.Context) error, error) {
				if write, err := u.Begin(l.agentState()); err != nil || !write {
					return nil, err
				}
				return func(ctx context.Context) (err error) {
					effect, err = u.Write(ctx)
					written = err == nil
					return err
				}, nil
			},
			End: func(err error) {
				if written {
					l.apply(effect)
				}
				reply(err)
			},
		})
	})
}

// Apply applies an effect that was written outside the session's order.
func (d agentAdapter) Apply(ctx context.Context, e agent.Effect) {
	l := d.l
	// A session that has ended again has no run for the event. The write is kept.
	_ = l.ask(context.WithoutCancel(ctx), func() error {
		l.apply(e)
		var now profiles.Session
		l.recordQueue.Do(func(ctx context.Context) (err error) {
			now, err = l.svc.deps.Catalogue.Session(ctx, l.id)
			return err
		}, func(err error) {
			if err == nil { // other updates may have come first
				l.rec.Execution = now.Execution
			}
		})
		return nil
	})
	l.svc.deps.Journal.Flush(ctx, l.id)
}

func (l *liveSession) agentState() agent.State {
	return agent.State{Unusable: l.usable(), HasAgent: l.hasAgent(), Followed: l.svc.deps.Journal.Followed(l.id), Execution: l.rec.Execution}
}

// hasAgent reports whether a client follows the session's events, or the session has a
// webhook.
func (l *liveSession) hasAgent() bool {
	return l.rec.WebhookURL != "" || l.svc.deps.Journal.Followed(l.id)
}

// apply records the task's new state and the event.
func (l *liveSession) apply(e agent.Effect) {
	l.rec.Execution = e.Execution
	l.runs.Record(e.Event, e.Data)
	l.touch()
	if !e.TurnEnded {
		return
	}
	l.turns++
	select {
	case l.turnEnded <- struct{}{}:
	default: // a checkpoint is already due
	}
}
