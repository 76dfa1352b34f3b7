package library

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// readers counts who reads which snapshot, so that none is removed meanwhile. Its
// methods are safe for concurrent use.
type readers struct {
	mu       sync.Mutex
	held     map[string][]*reading
	removals map[string]chan struct{} // that are under way; closed at their end
}

// reading is one use of a snapshot's bytes; what says which: "restored".
type reading struct{ what string }

func newReaders() *readers {
	return &readers{held: map[string][]*reading{}, removals: map[string]chan struct{}{}}
}

// hold keeps a snapshot from being removed until release is called, which may be
// called twice. It waits for a removal that is under way, so the caller must look
// up afterwards whether the snapshot is still there.
func (r *readers) hold(ctx context.Context, id, what string) (release func(), err error) {
	if err := r.enter(ctx, id); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	mine := &reading{what}
	r.held[id] = append(r.held[id], mine)
	return func() { r.leave(id, mine) }, nil
}

// remove begins the removal of a snapshot, which ends when done is called. While the
// snapshot is read that is snapshot_in_use, with how it is read. It waits for
// another removal.
func (r *readers) remove(ctx context.Context, id string) (done func(), err error) {
	if err := r.enter(ctx, id); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	if held := r.held[id]; len(held) > 0 {
		return nil, fault.New(fault.SnapshotInUse, "library.remove", "the snapshot is being %s", held[0].what)
	}
	over := make(chan struct{})
	r.removals[id] = over
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.removals, id)
		close(over)
	}, nil
}

// reads reports whether the snapshot is being read.
func (r *readers) reads(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held[id]) > 0
}

// enter takes the lock when no removal of the snapshot is under way.
func (r *readers) enter(ctx context.Context, id string) error {
	for {
		r.mu.Lock()
		over := r.removals[id]
		if over == nil {
			return nil
		}
		r.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.Timeout, "library.hold", "the snapshot is being removed")
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
