package pool

import (
	"context"
	"slices"
	"sync"
	"time"
)

// The first and the longest pause after a failed start. The pause doubles with each
// failure.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Spares keeps live, empty Chromes ready. It starts them one at a time in the background.
// Its methods are safe for concurrent use. T is the type of a Chrome.
type Spares[T Chrome] struct {
	limits   Limits
	capacity func() int
	start    func(context.Context) (T, error)

	ctx    context.Context // context of the starts; ends with the pool
	cancel context.CancelFunc
	wake   chan struct{}
	wg     sync.WaitGroup

	mu    sync.Mutex
	ready []*slot[T] // oldest first
}

// NewSpares returns an empty pool, which the first [Spares.Refill] fills. capacity returns
// how many spares may exist now, in addition to the limits. start starts one and reports
// its own failures.
func NewSpares[T Chrome](limits Limits, capacity func() int, start func(context.Context) (T, error)) *Spares[T] {
	p := &Spares[T]{limits: limits, capacity: capacity, start: start, wake: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(p.run)
	return p
}

// Size returns how many spares the pool should keep.
func (p *Spares[T]) Size() int { return p.limits.Size }

// Refill starts missing spares in the background.
func (p *Spares[T]) Refill() {
	select {
	case p.wake <- struct{}{}:
	default: // a refill is already requested
	}
}

// Take removes and returns the oldest spare, if one is ready. The caller owns it from
// here on. The next Refill replaces it.
func (p *Spares[T]) Take() (chrome T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.ready {
		if !dead(s.chrome) { // its watch may not have removed it yet
			return p.remove(i), true
		}
	}
	return chrome, false
}

// Keep ends all but n spares, because their resources are needed elsewhere. It waits.
func (p *Spares[T]) Keep(n int) {
	p.mu.Lock()
	var over []T
	for len(p.ready) > max(n, 0) {
		over = append(over, p.remove(0))
	}
	p.mu.Unlock()
	end(over...)
}

// Len returns how many spares are ready.
func (p *Spares[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ready)
}

// Close ends every spare, including those that are starting, and waits. Afterwards the
// pool stays empty.
func (p *Spares[T]) Close() {
	p.cancel()
	p.Keep(0)
	p.wg.Wait()
}

// run starts missing spares after each Refill, and again after a failed start.
func (p *Spares[T]) run() {
	pause := firstPause
	retry := time.NewTimer(lastPause)
	retry.Stop()
	defer retry.Stop()
	for {
		select {
		case <-p.wake:
		case <-retry.C:
		case <-p.ctx.Done():
			return
		}
		for p.wanted() {
			chrome, err := p.start(p.ctx)
			if err != nil {
				retry.Reset(pause)
				pause = min(2*pause, lastPause)
				break
			}
			pause = firstPause
			p.put(chrome)
		}
	}
}

// wanted reports whether one more spare should be started.
func (p *Spares[T]) wanted() bool {
	most := min(p.limits.Size, p.capacity())
	return p.ctx.Err() == nil && p.Len() < most
}

// put adds a spare, or ends it if it is no longer wanted.
func (p *Spares[T]) put(chrome T) {
	if !p.wanted() {
		end(chrome)
		return
	}
	s := &slot[T]{chrome: chrome, taken: make(chan struct{})}
	p.mu.Lock()
	closed := p.ctx.Err() != nil
	if !closed {
		p.ready = append(p.ready, s)
	}
	p.mu.Unlock()
	if closed {
		end(chrome)
		return
	}
	p.wg.Go(func() { p.watch(s) })
}

// watch replaces a spare that dies or exceeds the age limit.
func (p *Spares[T]) watch(s *slot[T]) {
	old := time.NewTimer(p.limits.Age)
	defer old.Stop()
	select {
	case <-s.taken:
		return
	case <-s.chrome.Done():
	case <-old.C:
	}
	if p.drop(s) {
		end(s.chrome)
		p.Refill()
	}
}

// drop removes a spare and reports whether it was still in the pool.
func (p *Spares[T]) drop(s *slot[T]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.ready, s)
	if i >= 0 {
		p.remove(i)
	}
	return i >= 0
}

// remove removes a spare. The caller holds the lock.
func (p *Spares[T]) remove(i int) T {
	s := p.ready[i]
	p.ready = slices.Delete(p.ready, i, i+1)
	close(s.taken)
	return s.chrome
}
