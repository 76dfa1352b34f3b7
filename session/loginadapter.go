package session

import (
	"context"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/registry"
)

// loginAdapter is what login checks need of a Service.
type loginAdapter struct {
	*registry.Registry[*liveSession]
	svc *Service
}

// EnterCheck registers a requested check on this node and among all nodes.
func (c loginAdapter) EnterCheck(ctx context.Context, userID string) (leave func(), err error) {
	here, err := c.Registry.EnterCheck(ctx, userID)
	if err != nil || c.svc.deps.Claims == nil {
		return here, err
	}
	everywhere, err := c.svc.deps.Claims.EnterCheck(ctx, userID)
	if err != nil {
		here()
		return nil, err
	}
	return func() { everywhere(); here() }, nil
}

// Work returns a context that ends with ctx or when the daemon stops. The daemon waits
// until leave is called. If it already stops, the error is shutting_down.
func (c loginAdapter) Work(ctx context.Context) (_ context.Context, leave func(), err error) {
	if err := c.WhileOpen("session.check", func() { c.svc.work.Add(1) }); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.svc.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
		c.svc.work.Done()
	}, nil
}

// TakeSlot takes a slot for a check that a caller asks for, on data of a user. It counts for
// the quota of sessions of the user and of the caller's key until release is called.
func (c loginAdapter) TakeSlot(ctx context.Context, by access.Caller, userID string) (release func(), err error) {
	claim, err := c.svc.claim(ctx, by, userID, false, nil)
	if err != nil {
		return nil, err
	}
	if err := c.svc.capacity.AcquireFor(ctx, claim, false); err != nil {
		return nil, err
	}
	return func() { c.svc.capacity.ReleaseFor(claim) }, nil
}
