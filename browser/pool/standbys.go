package pool

import (
	"slices"
	"sync"
	"time"
)

// Key names what a standby Chrome has: a snapshot's ID, and the engine that it
// was brought into.
type Key struct{ Snapshot, Engine string }

// Standbys are live Chromes with an environment brought in, each waiting for the
// one restore that it can serve. Its methods are safe for concurrent use. T is
// the type that the caller gets back.
type Standbys[T Chrome] struct {
	age  time.Duration
	lost func()

	mu     sync.Mutex
	closed bool
	ready  []standing[T] // oldest first
	wg     sync.WaitGroup
}

type standing[T Chrome] struct {
	key Key
	*slot[T]
}

// NewStandbys makes an empty pool. age is how long one is kept, and lost is told
// of each that died or grew old; it must not wait.
func NewStandbys[T Chrome](age time.Duration, lost func()) *Standbys[T] {
	return &Standbys[T]{age: age, lost: lost}
}

// Put takes a Chrome in, and ends it where the pool is closed. It is the pool's
// from here on.
func (p *Standbys[T]) Put(key Key, chrome T) {
	s := standing[T]{key, &slot[T]{chrome: chrome, taken: make(chan struct{})}}
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

// Take hands out the oldest Chrome of a key that fits; why says why the last one
// that is there does not, "" where none is. It is the caller's from here on.
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

// Retain ends all but so many of each key, the oldest first, and waits. It
// reports whether there were any to end.
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

// Keep ends all but n, for what they hold is needed elsewhere. It waits.
func (p *Standbys[T]) Keep(n int) {
	p.mu.Lock()
	var over []T
	for len(p.ready) > max(n, 0) {
		over = append(over, p.remove(0))
	}
	p.mu.Unlock()
	end(over...)
}

// Of is how many of a key are ready.
func (p *Standbys[T]) Of(key Key) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.ready {
		if s.key == key {
			n++
		}
	}
	return n
}

// Len is how many are ready.
func (p *Standbys[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ready)
}

// Close ends all and waits. Later ones end when they are put in.
func (p *Standbys[T]) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Keep(0)
	p.wg.Wait()
}

// watch ends a Chrome that dies or grows old, and tells.
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
	i := slices.IndexFunc(p.ready, func(is standing[T]) bool { return is.slot == s })
	if i >= 0 {
		p.remove(i)
	}
	p.mu.Unlock()
	if i >= 0 {
		end(s.chrome)
		p.lost()
	}
}

// remove takes one out; the caller holds the lock.
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
