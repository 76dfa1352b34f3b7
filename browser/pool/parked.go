// Package pool keeps live Chromes that no session uses. Parked ones were frozen by a
// memory snapshot, and each waits for the one restore that it can serve. Spares are
// empty. Standbys have an environment loaded.
package pool

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Chrome is what a pool needs of a browser: how to end it, and when it has ended.
type Chrome interface {
	Kill(ctx context.Context) error
	Done() <-chan struct{}
}

// MeasuredChrome is a Chrome that reports its memory use, in bytes. Memory may take a
// while, and may be called while the Chrome is being taken.
type MeasuredChrome interface {
	Chrome
	Memory() int64
}

// Limits are the limits of a pool.
type Limits struct {
	Size   int           // most Chromes; 0 keeps none
	Age    time.Duration // how long a Chrome is kept
	Memory int64         // most bytes that all parked Chromes may use together; 0 for no limit
}

// Parked is a pool of parked Chromes by the ID of their snapshot. Its methods are safe
// for concurrent use. T is the type of a Chrome.
type Parked[T MeasuredChrome] struct {
	limits Limits

	mu        sync.Mutex
	closed    bool
	slots     map[string]*slot[T]
	order     []string          // oldest first
	reasons   map[string]string // why a snapshot's Chrome is no longer here
	reasonIDs []string          // the keys of reasons, oldest first
	wg        sync.WaitGroup
}

// Share is somebody's share of a pool, such as a user's.
type Share struct {
	Of   string
	Most int // Chromes; negative: no limit
}

type slot[T Chrome] struct {
	chrome T
	shares []Share
	taken  chan struct{} // closed when the Chrome leaves the pool
	memory int64         // bytes of a parked Chrome, once known
}

// reasonsKept bounds how many reasons are kept.
const reasonsKept = 4096

// NewParked returns an empty pool.
func NewParked[T MeasuredChrome](limits Limits) *Parked[T] {
	return &Parked[T]{limits: limits, slots: map[string]*slot[T]{}, reasons: map[string]string{}}
}

// Put parks a Chrome under its snapshot's ID. It counts for the shares. If the pool is full,
// it evicts the oldest; if a share is exceeded, the oldest that counts for it. If the pool
// is closed or has size 0, Put ends the Chrome. From here on the pool owns the Chrome.
func (p *Parked[T]) Put(ctx context.Context, id string, chrome T, shares ...Share) error {
	p.mu.Lock()
	if p.closed || p.limits.Size <= 0 {
		p.note(id, "this daemon keeps no parked Chromes")
		p.mu.Unlock()
		return chrome.Kill(ctx)
	}
	s := &slot[T]{chrome: chrome, shares: shares, taken: make(chan struct{})}
	p.slots[id] = s
	p.order = append(p.order, id)
	var evicted []T
	for _, share := range shares {
		for share.Most >= 0 && p.countOf(share.Of) > share.Most {
			evicted = append(evicted, p.remove(p.oldestOf(share.Of), "the parked Chrome was evicted: its user or key had as many as the quota allows"))
		}
	}
	for len(p.order) > p.limits.Size {
		evicted = append(evicted, p.remove(p.order[0], "the parked Chrome was evicted: too many were parked"))
	}
	p.wg.Go(func() { p.watch(id, s) }) // Close waits for it
	p.mu.Unlock()
	return killAll(ctx, evicted)
}

// CountOf returns how many Chromes count for a share.
func (p *Parked[T]) CountOf(of string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.countOf(of)
}

// countOf is CountOf. The caller holds the lock.
func (p *Parked[T]) countOf(of string) (n int) {
	for _, s := range p.slots {
		if s.countsFor(of) {
			n++
		}
	}
	return n
}

// oldestOf returns the ID of the oldest Chrome that counts for a share; there is one. The
// caller holds the lock.
func (p *Parked[T]) oldestOf(of string) string {
	return p.order[slices.IndexFunc(p.order, func(id string) bool { return p.slots[id].countsFor(of) })]
}

func (s *slot[T]) countsFor(of string) bool {
	return slices.ContainsFunc(s.shares, func(share Share) bool { return share.Of == of })
}

// watch measures a Chrome's memory, and removes the Chrome when it dies or exceeds the
// age limit while parked.
func (p *Parked[T]) watch(id string, s *slot[T]) {
	if p.limits.Memory > 0 {
		p.measure(id, s)
	}
	old := time.NewTimer(p.limits.Age)
	defer old.Stop()
	why := "the parked Chrome died"
	select {
	case <-s.taken:
		return
	case <-s.chrome.Done():
	case <-old.C:
		why = "the parked Chrome exceeded the age limit"
	}
	p.mu.Lock()
	mine := p.slots[id] == s
	if mine {
		p.remove(id, why)
	}
	p.mu.Unlock()
	if mine {
		end(s.chrome)
	}
}

// measure records a Chrome's memory, which does not change while it is frozen. It then ends
// the oldest Chromes until the rest is within the limit, if necessary this one too.
func (p *Parked[T]) measure(id string, s *slot[T]) {
	memory := s.chrome.Memory()
	p.mu.Lock()
	var evicted []T
	if p.slots[id] == s {
		s.memory = memory
		for p.memory() > p.limits.Memory {
			evicted = append(evicted, p.remove(p.order[0], "the parked Chrome was evicted: parked Chromes used more memory than they may"))
		}
	}
	p.mu.Unlock()
	end(evicted...)
}

// memory returns the sum of all known memory in bytes. The caller holds the lock.
func (p *Parked[T]) memory() (sum int64) {
	for _, s := range p.slots {
		sum += s.memory
	}
	return sum
}

// Evict ends the oldest Chrome because memory is short, and waits. It returns false if
// there is none.
func (p *Parked[T]) Evict(ctx context.Context) (bool, error) {
	p.mu.Lock()
	if len(p.order) == 0 {
		p.mu.Unlock()
		return false, nil
	}
	oldest := p.remove(p.order[0], "the parked Chrome was evicted: memory was short")
	p.mu.Unlock()
	return true, oldest.Kill(ctx)
}

// Take removes and returns the Chrome of a snapshot. If it returns none, why is the
// reason. fits returns why a Chrome does not fit, or "" if it does. A Chrome that does
// not fit stays in the pool.
func (p *Parked[T]) Take(id string, fits func(T) (why string)) (chrome T, ok bool, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	parked, ok := p.slots[id]
	if !ok {
		if why = p.reasons[id]; why == "" {
			why = "the parked Chrome ended with an earlier daemon"
		}
		return chrome, false, why
	}
	if why = fits(parked.chrome); why != "" {
		return chrome, false, why
	}
	return p.remove(id, "the parked Chrome has already served a restore"), true, ""
}

// Drop ends the Chrome of a snapshot, if one is parked.
func (p *Parked[T]) Drop(ctx context.Context, id string) error {
	p.mu.Lock()
	s, ok := p.slots[id]
	if ok {
		p.remove(id, "the snapshot was deleted")
	}
	p.mu.Unlock()
	if !ok {
		return nil
	}
	return s.chrome.Kill(ctx)
}

// Has reports whether the Chrome of a snapshot is parked.
func (p *Parked[T]) Has(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.slots[id] != nil
}

// Len returns how many Chromes are parked.
func (p *Parked[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.slots)
}

// Close ends every parked Chrome and waits, at most endDeadline. A later Put ends its
// Chrome.
func (p *Parked[T]) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	var all []T
	for len(p.order) > 0 {
		all = append(all, p.remove(p.order[0], "the daemon stopped"))
	}
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, endDeadline)
	defer cancel()
	err := killAll(ctx, all)
	p.wg.Wait()
	return err
}

// remove removes a slot and records why. The caller holds the lock.
func (p *Parked[T]) remove(id, why string) T {
	s := p.slots[id]
	delete(p.slots, id)
	for i, o := range p.order {
		if o == id {
			p.order = append(p.order[:i], p.order[i+1:]...)
			break
		}
	}
	close(s.taken)
	p.note(id, why)
	return s.chrome
}

func (p *Parked[T]) note(id, why string) {
	if _, known := p.reasons[id]; !known {
		p.reasonIDs = append(p.reasonIDs, id)
	}
	p.reasons[id] = why
	if len(p.reasonIDs) > reasonsKept {
		delete(p.reasons, p.reasonIDs[0])
		p.reasonIDs = p.reasonIDs[1:]
	}
}
