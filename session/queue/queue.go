// Package queue runs slow tasks for a goroutine that must not wait: one after the other,
// beside it, each with a deadline. Their outcomes are reported back to it.
package queue

import (
	"context"
	"time"
)

// Queue runs tasks one after the other, each on a goroutine of its own. One goroutine
// owns it: that one alone calls its methods, receives from [Queue.Reports] and hands
// each report to [Queue.Finish]. Where the owner is gone, the report of the task that
// runs is kept in the channel, and no other task begins.
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
	// Begin runs on the owner's goroutine when it is the task's turn, and returns the slow
	// part. A nil function or an error ends the task.
	Begin func() (func(context.Context) error, error)
	// End gets the outcome on the owner's goroutine; nil: nothing is done with it.
	End func(error)
}

// New makes a queue. Each task gets a context that ends with ctx, or when within is
// over; run runs a function on a goroutine.
func New(ctx context.Context, within time.Duration, run func(func())) *Queue {
	return &Queue{run: run, ctx: ctx, within: within, reports: make(chan error, 1)}
}

// Len is how many tasks have not ended.
func (q *Queue) Len() int { return len(q.tasks) }

// Reports receives the error of a task whose slow part is done, for [Queue.Finish].
func (q *Queue) Reports() <-chan error { return q.reports }

// Add adds a task after those that wait.
func (q *Queue) Add(t Task) {
	q.tasks = append(q.tasks, t)
	q.next()
}

// Do adds a task that needs no decision.
func (q *Queue) Do(work func(context.Context) error, end func(error)) {
	q.Add(Task{Begin: func() (func(context.Context) error, error) { return work, nil }, End: end})
}

// After calls f on the owner's goroutine when all tasks before it have ended.
func (q *Queue) After(f func()) { q.Do(nil, func(error) { f() }) }

// Finish takes the report of the first task and begins the next.
func (q *Queue) Finish(err error) {
	q.end(err)
	q.next()
}

// next begins tasks until one has work beside the owner's goroutine.
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
