package pool

import (
	"slices"
	"sync"
	"time"
)

// Key identifies what a standby Chrome holds: a snapshot's ID, and the engine that it was
// loaded in.
type Key struct{ Snapshot, Engine string }

// Standbys is a pool of live Chromes with an environment loaded, each waiting for the one
// restore that it can serve. Its methods are safe for concurrent use. T is the type of a
// Chrome.
type Standbys[T Chrome] struct {
	age  time.Duration
	lost func()

	mu     sync.Mutex
	closed bool
	ready  []standbySlot[T] // oldest first
	wg     sync.WaitGroup
}

type standbySlot[T Chrome] struct {
	key Key
	*slot[T]
}

// NewStandbys returns an empty pool. age is how long a Chrome is kept. lost is called for
// each Chrome that died or exceeded age; it must not block.
func NewStandbys[T Chrome](age time.Duration, lost func()) *Standbys[T] {
	return &Standbys[T]{age: age, lost: lost}
}

// Put adds a Chrome, or ends it if the pool is closed. From here on the pool owns the
// Chrome.
func (p *Standbys[T]) Put(key Key, chrome T) {
	s := standbySlot[T]{key, &slot[T]{chrome: chrome, taken: make(chan struct{})}}
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.ready = append(p.ready, s)
		p.wg.Go(func() { p.watch(s.slot) })
	}
	p.mu.Unlock()
	if closed {
		end(chrome)
	}
}

// Take removes and returns the oldest Chrome of a key that fits. The caller owns it from
// here on. If none fits, why is the reason of the last one, or "" if there was none.
func (p *Standbys[T]) Take(key Key, fits func(T) (why string)) (chrome T, ok bool, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.ready {
		if s.key != key || dead(s.chrome) {
			continue
		}
		if why = fits(s.chrome); why == "" {
			return p.remove(i), true, ""
		}
	}
	return chrome, false, why
}

// Retain ends all Chromes except the newest most[key] of each key, and waits. It reports
// whether it ended any.
func (p *Standbys[T]) Retain(most map[Key]int) bool {
	p.mu.Lock()
	var over []T
	kept := map[Key]int{}
	for i := len(p.ready) - 1; i >= 0; i-- {
		key := p.ready[i].key
		if kept[key]++; kept[key] > most[key] {
			over = append(over, p.remove(i))
		}
	}
	p.mu.Unlock()
	end(over...)
	return len(over) > 0
}

// Keep ends all but n Chromes, because their resources are needed elsewhere. It waits.
func (p *Standbys[T]) Keep(n int) {
	p.mu.Lock()
	var over []T
	for len(p.ready) > max(n, 0) {
		over = append(over, p.remove(0))
	}
	p.mu.Unlock()
	end(over...)
}

// Count returns how many Chromes of a key are ready.
func (p *Standbys[T]) Count(key Key) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.ready {
		if s.key == key {
			n++
		}
	}
	return n
}

// Len returns how many Chromes are ready.
func (p *Standbys[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ready)
}

// Close ends all Chromes and waits. A later Put ends its Chrome.
func (p *Standbys[T]) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Keep(0)
	p.wg.Wait()
}

// watch ends a Chrome that dies or exceeds the age limit, and calls lost.
func (p *Standbys[T]) watch(s *slot[T]) {
	old := time.NewTimer(p.age)
	defer old.Stop()
	select {
	case <-s.taken:
		return
	case <-s.chrome.Done():
	case <-old.C:
	}
	p.mu.Lock()
	i := slices.IndexFunc(p.ready, func(is standbySlot[T]) bool { return is.slot == s })
	if i >= 0 {
		p.remove(i)
	}
	p.mu.Unlock()
	if i >= 0 {
		end(s.chrome)
		p.lost()
	}
}

// remove removes a Chrome. The caller holds the lock.
func (p *Standbys[T]) remove(i int) T {
	s := p.ready[i]
	p.ready = slices.Delete(p.ready, i, i+1)
	close(s.taken)
	return s.chrome
}

func dead(chrome Chrome) bool {
	select {
	case <-chrome.Done():
		return true
	default:
		return false
	}
}
