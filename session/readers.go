package session

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// readers tells which snapshots are being read, so that none is removed under
// who reads it. Its methods are safe for concurrent use.
type readers struct {
	mu    sync.Mutex
	held  map[string][]*reading
	going map[string]chan struct{} // removals that are under way; closed at their end
}

// reading is one use of a snapshot's bytes; what says which: "restored".
type reading struct{ what string }

func newReaders() *readers {
	return &readers{held: map[string][]*reading{}, going: map[string]chan struct{}{}}
}

// hold keeps a snapshot from being removed until release is called, which may be
// called twice. It waits for a removal that is under way: whether the snapshot
// is still there is to be looked up afterwards.
func (r *readers) hold(ctx context.Context, id, what string) (release func(), err error) {
	if err := r.enter(ctx, id); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	mine := &reading{what}
	r.held[id] = append(r.held[id], mine)
	return func() { r.leave(id, mine) }, nil
}

// remove is for who removes a snapshot, until done is called. While it is read
// that is snapshot_in_use, which says for what. It waits for another removal.
func (r *readers) remove(ctx context.Context, id string) (done func(), err error) {
	if err := r.enter(ctx, id); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	if held := r.held[id]; len(held) > 0 {
		return nil, fault.New(fault.SnapshotInUse, "session.remove", "the snapshot is being %s", held[0].what)
	}
	over := make(chan struct{})
	r.going[id] = over
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.going, id)
		close(over)
	}, nil
}

// reads reports whether somebody reads the snapshot.
func (r *readers) reads(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held[id]) > 0
}

// enter locks, once nobody removes the snapshot.
func (r *readers) enter(ctx context.Context, id string) error {
	for {
		r.mu.Lock()
		over := r.going[id]
		if over == nil {
			return nil
		}
		r.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.Timeout, "session.snapshot", "the snapshot is being removed")
		}
	}
}

func (r *readers) leave(id string, one *reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rest []*reading
	for _, other := range r.held[id] {
		if other != one {
			rest = append(rest, other)
		}
	}
	if r.held[id] = rest; len(rest) == 0 {
		delete(r.held, id)
	}
}

// hold keeps a snapshot from being removed while it is being read, for what is
// said. One that was removed since it was looked up is snapshot_not_found.
func (s *Service) hold(ctx context.Context, row profiles.Snapshot, what string) (release func(), err error) {
	release, err = s.readers.hold(ctx, row.ID, what)
	if err != nil {
		return nil, err
	}
	if _, err := s.Catalogue.Snapshot(ctx, row.ID); err != nil {
		release()
		return nil, err
	}
	return release, nil
}
