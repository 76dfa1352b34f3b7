package access

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// errKeyDeleted is returned to a caller whose key was deleted during the call.
var errKeyDeleted = fault.New(fault.Unauthorized, "access.key", "the API key was deleted")

// connections holds what is open with each key, so that deleting the key closes it. Its
// methods are safe for concurrent use.
type connections struct {
	mu   sync.Mutex
	open map[string]map[*connection]struct{} // by key ID
}

// connection is one open connection. end closes it with the reason. end is called once and
// must not block.
type connection struct{ end func(why error) }

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

// end closes everything that is open with a key.
func (o *connections) end(keyID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for c := range o.open[keyID] {
		c.end(errKeyDeleted)
	}
	delete(o.open, keyID)
}

// keys returns the IDs of the keys with which something is open.
func (o *connections) keys() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.open))
}

// EndDeleted ends what is open with keys that another node has deleted.
func (k *Keys) EndDeleted(ctx context.Context) {
	for _, id := range k.connections.keys() {
		if _, err := k.key(ctx, id); errors.Is(err, errKeyDeleted) {
			k.connections.end(id)
		}
	}
}

// RegisterConnection registers a connection of the caller's key until leave is called. If
// the key is deleted or expires, end is called once with an error that says so; it must not
// block. RegisterConnection
// registers first and then looks the key up, so it cannot miss a deletion. For a key that is
// deleted by then it calls end too, and returns unauthorized.
func (k *Keys) RegisterConnection(ctx context.Context, c Caller, end func(why error)) (leave func(), err error) {
	var once sync.Once
	one := &connection{func(why error) { once.Do(func() { end(why) }) }}
	k.connections.add(c.KeyID, one)
	rec, err := k.key(ctx, c.KeyID)
	if err != nil {
		if errors.Is(err, errKeyDeleted) {
			k.connections.end(c.KeyID)
		}
		k.connections.remove(c.KeyID, one)
		return nil, err
	}
	stop := k.endAtExpiry(rec, func() { one.end(errKeyExpired) })
	return func() { stop(); k.connections.remove(c.KeyID, one) }, nil
}

// CallContext returns a context that ends when the caller's key is deleted or expires.
// Its cause is then the error that [OrKeyDeleted] returns. The caller calls leave when
// its call has ended.
func (k *Keys) CallContext(ctx context.Context, c Caller) (_ context.Context, leave func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	left, err := k.RegisterConnection(ctx, c, func(why error) { cancel(why) })
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return ctx, func() { left(); cancel(nil) }, nil
}

// OrKeyDeleted returns the error of a call in a context of [Keys.CallContext]. If the call
// failed because its key was deleted or has expired, that error says so.
func OrKeyDeleted(ctx context.Context, err error) error {
	why := context.Cause(ctx)
	if err != nil && (errors.Is(why, errKeyDeleted) || errors.Is(why, errKeyExpired)) {
		return why
	}
	return err
}

// Reader returns a reader of r that stops when ctx ends. Its error is then the cause of
// ctx.
func Reader(ctx context.Context, r io.Reader) io.Reader { return reader{ctx, r} }

type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if r.ctx.Err() != nil { // Read may have blocked for long
		return 0, context.Cause(r.ctx)
	}
	return n, err
}
