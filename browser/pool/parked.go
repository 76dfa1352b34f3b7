// Package pool keeps live Chromes that no session has: parked ones, frozen by
// a memory snapshot, each waiting for the one restore that it can serve, empty
// ones, and ones with an environment brought in.
package pool

import (
	"context"
	"sync"
	"time"
)

// Chrome is what a pool needs of a browser: to end it, and to hear of its end.
type Chrome interface {
	Kill(ctx context.Context) error
	Done() <-chan struct{}
}

// Weighed is a Chrome that tells how much memory it takes, in bytes. That may
// take a while, and may be asked while it is being handed out.
type Weighed interface {
	Chrome
	Memory() int64
}

// Limits bound a pool.
type Limits struct {
	Size   int           // Chromes; 0 keeps none
	Age    time.Duration // how long one is kept
	Memory int64         // bytes that all parked ones may take together; 0 for no limit
}

// Parked is a pool of parked Chromes by the ID of their snapshot. Its methods
// are safe for concurrent use. T is the browser type that the caller gets back.
type Parked[T Weighed] struct {
	limits Limits

	mu     sync.Mutex
	closed bool
	slots  map[string]*slot[T]
	order  []string          // oldest first
	gone   map[string]string // why a snapshot's Chrome is not here any more
	lost   []string          // the keys of gone, oldest first
	wg     sync.WaitGroup
}

type slot[T Chrome] struct {
	chrome T
	taken  chan struct{} // closed when it leaves the pool
	memory int64         // of a parked one, once it is known
}

// goneKept bounds how many reasons are remembered.
const goneKept = 4096

// New makes an empty pool.
func New[T Weighed](limits Limits) *Parked[T] {
	return &Parked[T]{limits: limits, slots: map[string]*slot[T]{}, gone: map[string]string{}}
}

// Put parks a Chrome under its snapshot's ID; the oldest go where there is no
// room. A pool that is closed or has no size ends it. The Chrome is the
// pool's from here on.
func (p *Parked[T]) Put(ctx context.Context, id string, chrome T) error {
	p.mu.Lock()
	if p.closed || p.limits.Size <= 0 {
		p.note(id, "no Chrome is kept parked")
		p.mu.Unlock()
		return chrome.Kill(ctx)
	}
	s := &slot[T]{chrome: chrome, taken: make(chan struct{})}
	p.slots[id] = s
	p.order = append(p.order, id)
	var evicted []T
	for len(p.order) > p.limits.Size {
		evicted = append(evicted, p.remove(p.order[0], "the parked Chrome was evicted to make room"))
	}
	p.wg.Go(func() { p.watch(id, s) }) // Close, which waits for it, comes before or after
	p.mu.Unlock()
	return killAll(ctx, evicted)
}

// watch weighs a Chrome, and drops it when it dies or grows old while it is
// parked.
func (p *Parked[T]) watch(id string, s *slot[T]) {
	if p.limits.Memory > 0 {
		p.weigh(id, s)
	}
	old := time.NewTimer(p.limits.Age)
	defer old.Stop()
	why := "the parked Chrome died"
	select {
	case <-s.taken:
		return
	case <-s.chrome.Done():
	case <-old.C:
		why = "the parked Chrome was too old"
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

// weigh notes what a Chrome takes, which stays as it is while it is frozen, and
// ends the oldest ones until what is left may be kept: the Chrome itself at last.
func (p *Parked[T]) weigh(id string, s *slot[T]) {
	memory := s.chrome.Memory()
	p.mu.Lock()
	var evicted []T
	if p.slots[id] == s {
		s.memory = memory
		for p.memory() > p.limits.Memory {
			evicted = append(evicted, p.remove(p.order[0], "the parked Chrome was evicted: they took more memory than they may"))
		}
	}
	p.mu.Unlock()
	end(evicted...)
}

// memory is what all take, as far as it is known; the caller holds the lock.
func (p *Parked[T]) memory() (sum int64) {
	for _, s := range p.slots {
		sum += s.memory
	}
	return sum
}

// Evict ends the oldest Chrome, because memory is short; false where there is
// none. It waits.
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

// Take hands out the Chrome of a snapshot, once. Without one, why says what
// became of it. One that does not fit stays for whom it does; fits gives the
// reason, "" where it fits.
func (p *Parked[T]) Take(id string, fits func(T) (why string)) (chrome T, ok bool, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	parked, ok := p.slots[id]
	if !ok {
		if why = p.gone[id]; why == "" {
			why = "the parked Chrome did not outlive the daemon"
		}
		return chrome, false, why
	}
	if why = fits(parked.chrome); why != "" {
		return chrome, false, why
	}
	return p.remove(id, "the parked Chrome has served a restore already"), true, ""
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

// Len is how many are parked.
func (p *Parked[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.slots)
}

// Close ends every parked Chrome and waits, endDeadline at most. Later calls end
// what they are given.
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

// remove takes a slot out and remembers why; the caller holds the lock.
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
	if _, known := p.gone[id]; !known {
		p.lost = append(p.lost, id)
	}
	p.gone[id] = why
	if len(p.lost) > goneKept {
		delete(p.gone, p.lost[0])
		p.lost = p.lost[1:]
	}
}
