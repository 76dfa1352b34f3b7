// Package queue runs slow tasks for a goroutine that must not wait. Tasks run one after
// the other on other goroutines, each with a deadline. Their results are reported to the
// owner.
package queue

import (
	"context"
	"time"
)

// Queue runs tasks one after the other, each on its own goroutine. One goroutine owns the
// queue. Only the owner calls its methods, receives from [Queue.Reports] and passes each
// report to [Queue.Finish]. If the owner has ended, the report of the running task stays
// in the channel, and no other task begins.
type Queue struct {
	run     func(func())
	ctx     context.Context
	within  time.Duration
	tasks   []Task
	busy    bool       // the first task has begun
	reports chan error // of the first task
}

// Task is one task of a queue.
type Task struct {
	// Begin runs on the owner's goroutine when the task's turn comes, and returns the
	// slow part. A nil function or an error ends the task.
	Begin func() (func(context.Context) error, error)
	// End receives the task's error on the owner's goroutine. It may be nil.
	End func(error)
}

// New makes a queue. Each task gets a context that ends with ctx, or after within. run
// runs a function on a goroutine.
func New(ctx context.Context, within time.Duration, run func(func())) *Queue {
	return &Queue{run: run, ctx: ctx, within: within, reports: make(chan error, 1)}
}

// Len returns how many tasks have not ended.
func (q *Queue) Len() int { return len(q.tasks) }

// Reports returns the channel with the error of a task whose slow part has ended. The
// owner passes it to [Queue.Finish].
func (q *Queue) Reports() <-chan error { return q.reports }

// Add appends a task.
func (q *Queue) Add(t Task) {
	q.tasks = append(q.tasks, t)
	q.next()
}

// Do appends a task that is only a slow part. end may be nil.
func (q *Queue) Do(work func(context.Context) error, end func(error)) {
	q.Add(Task{Begin: func() (func(context.Context) error, error) { return work, nil }, End: end})
}

// After calls f on the owner's goroutine when all tasks before it have ended.
func (q *Queue) After(f func()) { q.Do(nil, func(error) { f() }) }

// Finish handles the report of the first task and begins the next task.
func (q *Queue) Finish(err error) {
	q.end(err)
	q.next()
}

// next begins tasks until one runs on its own goroutine.
func (q *Queue) next() {
	for !q.busy && len(q.tasks) > 0 {
		q.busy = true
		work, err := q.tasks[0].Begin()
		if work == nil || err != nil {
			q.end(err)
			continue
		}
		q.run(func() {
			ctx, cancel := context.WithTimeout(q.ctx, q.within)
			defer cancel()
			q.reports <- work(ctx)
		})
	}
}

func (q *Queue) end(err error) {
	end := q.tasks[0].End
	q.tasks[0] = Task{}
	q.tasks, q.busy = q.tasks[1:], false
	if end != nil {
		end(err)
	}
}
