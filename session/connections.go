package session

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// errKeyDeleted is returned to a caller whose key was deleted during the call.
var errKeyDeleted = fault.New(fault.Unauthorized, "session.key", "the API key was deleted")

// connections are what is open with each key, so that deleting it closes them.
// Its methods are safe for concurrent use.
type connections struct {
	mu   sync.Mutex
	open map[string]map[*connection]struct{} // by key ID
}

// connection is one that is open; end closes it, once, and must not block.
type connection struct{ end func() }

func newConnections() *connections {
	return &connections{open: map[string]map[*connection]struct{}{}}
}

func (o *connections) add(keyID string, c *connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open[keyID] == nil {
		o.open[keyID] = map[*connection]struct{}{}
	}
	o.open[keyID][c] = struct{}{}
}

func (o *connections) remove(keyID string, c *connection) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.open[keyID], c)
	if len(o.open[keyID]) == 0 {
		delete(o.open, keyID)
	}
}

// end closes what is open with a key.
func (o *connections) end(keyID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.open[keyID] {
		c.end()
	}
	delete(o.open, keyID)
}

// connect notes that something is open with the caller's key until leave is
// called: end is called when the key is deleted. It registers first
// and then looks the key up, so it cannot miss a deletion.
func (s *Service) connect(ctx context.Context, c Caller, end func()) (leave func(), err error) {
	one := &connection{end}
	s.connections.add(c.KeyID, one)
	if _, err := s.withKey(ctx, c.KeyID); err != nil {
		s.connections.remove(c.KeyID, one)
		return nil, err
	}
	return func() { s.connections.remove(c.KeyID, one) }, nil
}

// whileKey is ctx that ends when the caller's key is deleted, with [errKeyDeleted]
// as its cause. leave is called when the call is over.
func (s *Service) whileKey(ctx context.Context, c Caller) (_ context.Context, leave func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	left, err := s.connect(ctx, c, func() { cancel(errKeyDeleted) })
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return ctx, func() { left(); cancel(nil) }, nil
}

// orKeyDeleted is the error of a call by [Service.whileKey]: that the key was deleted,
// where that is why it failed.
func orKeyDeleted(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errKeyDeleted) {
		return errKeyDeleted
	}
	return err
}

// whileOpen reads until ctx ends; then it gives the cause.
type whileOpen struct {
	ctx context.Context
	r   io.Reader
}

func (w whileOpen) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if w.ctx.Err() != nil { // it may have waited for long
		return 0, context.Cause(w.ctx)
	}
	return n, err
}
