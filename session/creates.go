package session

import (
	"context"
	"errors"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// creates are the creates, the resumes and the saves of discarded sessions that are under way on
// a node. All of them end before the node that has lost its lease takes another one: what they
// have claimed is void then, and their sessions would live on without claims. Its methods are safe
// for concurrent use.
type creates struct {
	mu      sync.Mutex
	lease   context.Context // ends when the lease is lost
	end     context.CancelCauseFunc
	running int
	ended   chan struct{} // closed when none is running and the lease is lost
}

// errLeaseLost is the cause of the contexts of creates that end with the lease.
var errLeaseLost = errors.New("the lease was lost")

func newCreates() *creates {
	c := &creates{}
	c.begin()
	return c
}

// begin lets creates enter, under a new lease.
func (c *creates) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lease, c.end = context.WithCancelCause(context.Background())
	c.ended = make(chan struct{})
}

// enter registers a create until leave is called. The context that it returns ends when the lease
// is lost. The error is node_lost between that and the next lease.
func (c *creates) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lease.Err() != nil {
		return nil, nil, leaseLost()
	}
	c.running++
	ctx, stop := within(ctx, c.lease)
	return ctx, func() {
		stop()
		c.leave()
	}, nil
}

func (c *creates) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.running == 0 && c.lease.Err() != nil {
		close(c.ended)
	}
}

// within returns a context that also ends with lease, until stop is called.
func within(ctx, lease context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(lease, func() { cancel(context.Cause(lease)) })
	return ctx, func() {
		forget()
		cancel(nil)
	}
}

// until returns a context that ends with ctx or when the lease is lost, until stop is called.
func (c *creates) until(ctx context.Context) (_ context.Context, stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return within(ctx, c.lease)
}

// lose cancels all creates. No other enters until begin.
func (c *creates) lose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lease.Err() != nil {
		return
	}
	c.end(errLeaseLost)
	if c.running == 0 {
		close(c.ended)
	}
}

// await returns when all creates have ended that lose has cancelled, or with ctx.
func (c *creates) await(ctx context.Context) {
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// orLeaseLost returns the error of a create in a context of enter. If the lease was lost, it is
// node_lost, also if the create has succeeded: then its session ends at once.
func orLeaseLost(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errLeaseLost) {
		return leaseLost()
	}
	return err
}

func leaseLost() error {
	return fault.New(fault.NodeLost, "session.create", "%s", fault.NodeLost.Text())
}
