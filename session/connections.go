package session

import (
	"context"
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
