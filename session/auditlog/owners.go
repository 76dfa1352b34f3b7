package auditlog

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/profiles"
)

// Owners finds whose sessions and snapshots are.
type Owners interface {
	Session(ctx context.Context, id string) (profiles.Session, error)
	Snapshot(ctx context.Context, id string) (profiles.Snapshot, error)
}

// maxOwners limits how many users are remembered.
const maxOwners = 10_000

// owners remembers what Owners found: a session and a snapshot never change their user.
type owners struct {
	from Owners

	mu    *sync.Mutex
	known map[[2]string]string // users by session ID and snapshot ID
}

func newOwners(from Owners) owners {
	return owners{from: from, mu: &sync.Mutex{}, known: map[[2]string]string{}}
}

func (o *owners) of(ctx context.Context, sessionID, snapshotID string) string {
	id := [2]string{sessionID, snapshotID}
	o.mu.Lock()
	user, known := o.known[id]
	o.mu.Unlock()
	if known {
		return user
	}
	switch {
	case sessionID != "":
		s, err := o.from.Session(ctx, sessionID)
		if err != nil {
			return ""
		}
		user = s.UserID
	case snapshotID != "":
		s, err := o.from.Snapshot(ctx, snapshotID)
		if err != nil {
			return ""
		}
		user = s.UserID
	default:
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.known) >= maxOwners {
		clear(o.known)
	}
	o.known[id] = user
	return user
}
