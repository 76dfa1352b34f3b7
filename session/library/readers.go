package library

import (
	"context"
	"sync"

	"github.com/stasisd/stasis/fault"
)

// readers counts the readers of each snapshot, so that no snapshot is removed while it is
// read. Its methods are safe for concurrent use.
type readers struct {
	mu       sync.Mutex
	held     map[string][]*snapshotUse
	removals map[string]chan struct{} // running removals, by snapshot; closed at their end
}

// snapshotUse is one use of a snapshot's bytes. what names it, for example "restored".
type snapshotUse struct{ what string }

func newReaders() *readers {
	return &readers{held: map[string][]*snapshotUse{}, removals: map[string]chan struct{}{}}
}

// hold prevents the removal of a snapshot until release is called, which may be called
// twice. It waits for a running removal, so the caller must check afterwards whether the
// snapshot still exists.
func (r *readers) hold(ctx context.Context, id, what string) (release func(), err error) {
	if err := r.enter(ctx, id); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	own := &snapshotUse{what}
	r.held[id] = append(r.held[id], own)
	return func() { r.leave(id, own) }, nil
}

// remove starts the removal of a snapshot; the removal ends when done is called. If the
// snapshot is being read, the error is snapshot_in_use and names the use. remove waits
// for another running removal.
func (r *readers) remove(ctx context.Context, id string) (done func(), err error) {
	if err := r.enter(ctx, id); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	if held := r.held[id]; len(held) > 0 {
		return nil, fault.New(fault.SnapshotInUse, "library.remove", "the snapshot is being %s; try again later", held[0].what)
	}
	removed := make(chan struct{})
	r.removals[id] = removed
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.removals, id)
		close(removed)
	}, nil
}

// reads reports whether the snapshot is being read.
func (r *readers) reads(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.held[id]) > 0
}

// enter locks r.mu as soon as no removal of the snapshot is running.
func (r *readers) enter(ctx context.Context, id string) error {
	for {
		r.mu.Lock()
		removed := r.removals[id]
		if removed == nil {
			return nil
		}
		r.mu.Unlock()
		select {
		case <-removed:
		case <-ctx.Done():
			return fault.Wrap(ctx.Err(), fault.Timeout, "library.hold", "the snapshot is being removed; try again later")
		}
	}
}

func (r *readers) leave(id string, one *snapshotUse) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var rest []*snapshotUse
	for _, other := range r.held[id] {
		if other != one {
			rest = append(rest, other)
		}
	}
	if r.held[id] = rest; len(rest) == 0 {
		delete(r.held, id)
	}
}
