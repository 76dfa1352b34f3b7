package access

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// errKeyDeleted is returned to a caller whose key was deleted during the call.
var errKeyDeleted = fault.New(fault.Unauthorized, "access.key", "the API key was deleted")

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

// Connected registers something that is open with the caller's key until leave is
// called: end is called, once, when the key is deleted, and must not block. It
// registers first and then looks the key up, so it cannot miss a deletion. A key
// that was deleted is unauthorized.
func (k *Keys) Connected(ctx context.Context, c Caller, end func()) (leave func(), err error) {
	one := &connection{end}
	k.connections.add(c.KeyID, one)
	if _, err := k.Caller(ctx, c.KeyID); err != nil {
		k.connections.remove(c.KeyID, one)
		return nil, err
	}
	return func() { k.connections.remove(c.KeyID, one) }, nil
}

// While is ctx that ends when the caller's key is deleted; its cause is then the
// error that [OrKeyDeleted] gives. leave is called when the call is over.
func (k *Keys) While(ctx context.Context, c Caller) (_ context.Context, leave func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	left, err := k.Connected(ctx, c, func() { cancel(errKeyDeleted) })
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return ctx, func() { left(); cancel(nil) }, nil
}

// ErrKeyDeleted is unauthorized, for a caller whose key was deleted during the call.
func ErrKeyDeleted() error { return errKeyDeleted }

// OrKeyDeleted is the error of a call in a context of [Keys.While]: that the key was
// deleted, where that is why the call failed.
func OrKeyDeleted(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errKeyDeleted) {
		return errKeyDeleted
	}
	return err
}

// Reader reads until ctx ends; then its error is the context's cause.
func Reader(ctx context.Context, r io.Reader) io.Reader { return reader{ctx, r} }

type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if r.ctx.Err() != nil { // it may have waited for long
		return 0, context.Cause(r.ctx)
	}
	return n, err
}
