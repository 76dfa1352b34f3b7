package session

import (
	"context"

	"github.com/stasisd/stasis/session/registry"
)

// checks is what login checks ask of a Service.
type checks struct {
	*registry.Registry[*live]
	svc *Service
}

// Work is ctx until the daemon stops, which waits until leave is called. Where it stops
// already, that is shutting_down.
func (c checks) Work(ctx context.Context) (_ context.Context, leave func(), err error) {
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
