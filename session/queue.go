package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
)

// recordDeadline bounds how long the catalogue may take for one write of a session.
const recordDeadline = 30 * time.Second

// queue runs the tasks of a session that take long, one after the other, beside the
// session's goroutine. That goroutine alone calls its methods, and hands each report
// to finished.
type queue struct {
	run     func(func()) // runs a function on a goroutine that the service waits for
	ctx     context.Context
	within  time.Duration // the deadline of each task
	tasks   []task
	busy    bool       // the first task has begun
	reports chan error // of the first task
}

// task is one task of a queue.
type task struct {
	// begin decides on the session's goroutine, when it is the task's turn, what is
	// to be done beside it. A nil function or an error ends the task.
	begin func() (func(context.Context) error, error)
	// end takes the outcome on the session's goroutine; nil: nobody wants it.
	end func(error)
}

func newQueue(s *Service, within time.Duration) *queue {
	// The one report has its place, whether or not the session is still there.
	return &queue{run: s.work.Go, ctx: s.ctx, within: within, reports: make(chan error, 1)}
}

// add has a task done after those that wait.
func (q *queue) add(t task) {
	q.tasks = append(q.tasks, t)
	q.next()
}

// do adds a task that needs no decision.
func (q *queue) do(work func(context.Context) error, end func(error)) {
	q.add(task{begin: func() (func(context.Context) error, error) { return work, nil }, end: end})
}

// after calls f on the session's goroutine when all tasks before it have ended.
func (q *queue) after(f func()) { q.do(nil, func(error) { f() }) }

func (q *queue) idle() bool { return len(q.tasks) == 0 }

// next begins tasks until one has work beside the session's goroutine.
func (q *queue) next() {
	for !q.busy && len(q.tasks) > 0 {
		q.busy = true
		work, err := q.tasks[0].begin()
		if work == nil || err != nil {
			q.over(err)
			continue
		}
		q.run(func() {
			ctx, cancel := context.WithTimeout(q.ctx, q.within)
			defer cancel()
			q.reports <- work(ctx)
		})
	}
}

// finished takes the report of the first task and begins the next.
func (q *queue) finished(err error) {
	q.over(err)
	q.next()
}

func (q *queue) over(err error) {
	end := q.tasks[0].end
	q.tasks[0] = task{}
	q.tasks, q.busy = q.tasks[1:], false
	if end != nil {
		end(err)
	}
}

// askAndWait runs f on the session's goroutine and waits until f, or a task that f has
// added, calls reply. When ctx ends first, what was begun goes on.
func (l *live) askAndWait(ctx context.Context, f func(reply func(error))) error {
	answer := make(chan error, 1)
	if err := l.ask(ctx, func() error {
		f(func(err error) { answer <- err })
		return nil
	}); err != nil {
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return notInTime(ctx)
	}
}

func notInTime(ctx context.Context) error {
	return fault.Wrap(ctx.Err(), fault.Timeout, "session.ask", "the session did not answer in time")
}
