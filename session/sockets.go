package session

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/quota"
)

// reservedSocket is a socket that a create has counted for the first CDP client of the same
// key. The zero value is ready. Its methods are safe for concurrent use.
type reservedSocket struct {
	mu      sync.Mutex
	keyID   string
	release func() // nil: there is none
	ended   bool   // the session has ended
}

// reserve keeps a counted socket. If the session has ended already, it is released.
func (r *reservedSocket) reserve(keyID string, release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		release()
		return
	}
	r.keyID, r.release = keyID, release
}

// take returns what releases the socket, which the caller then does; nil if none is reserved
// for the key.
func (r *reservedSocket) take(keyID string) (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keyID == keyID {
		release, r.release = r.release, nil
	}
	return release
}

// end releases a socket that nobody took.
func (r *reservedSocket) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended = true; r.release != nil {
		r.release()
		r.release = nil
	}
}

// reserveSocket counts a socket of a user's session that is not made yet, until release is
// called. If a quota is reached, the error is quota_exceeded.
func (s *Service) reserveSocket(ctx context.Context, c access.Caller, userID string) (release func(), err error) {
	limits, err := s.users.QuotaLimits(ctx, c, userID, quota.Sockets)
	if err != nil {
		return nil, err
	}
	return s.sockets.Take("session.socket", limits)
}
