package view

import (
	"context"

	"golang.org/x/sync/semaphore"

	"github.com/stasisd/stasis/budget"
)

// A viewer's commands that wait for Chrome have at most this number and size. Then the
// reader waits, so that the viewer's connection slows down.
const (
	maxQueuedCommands = 64
	maxQueuedBytes    = 2 << 20
)

// commandQueue holds a viewer's commands that wait for Chrome.
type commandQueue struct {
	queue   chan Command
	free    *semaphore.Weighted // bytes
	account *budget.Account     // counts the bytes
}

func newCommandQueue(a *budget.Account) *commandQueue {
	return &commandQueue{queue: make(chan Command, maxQueuedCommands), free: semaphore.NewWeighted(maxQueuedBytes), account: a}
}

// put adds a command. It waits while the queue is full. Its error is that of ctx.
func (q *commandQueue) put(ctx context.Context, c Command) error {
	if err := q.free.Acquire(ctx, int64(c.size())); err != nil {
		return err
	}
	q.account.Take(c.size()) // if the budget is exceeded, it ends the client that holds most
	select {
	case q.queue <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// taken releases the memory of a command that was received from the queue.
func (q *commandQueue) taken(c Command) {
	q.free.Release(int64(c.size()))
	q.account.Release(c.size())
}
