package pool

import (
	"context"
	"slices"
	"sync"
	"time"
)

// How long a start that failed is left alone: longer from one failure to the
// next.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// Spares keeps live, empty Chromes ahead of need, started one after the other in
// the background. Its methods are safe for concurrent use. T is the type that
// the caller gets back.
type Spares[T Chrome] struct {
	limits Limits
	room   func() int
	start  func(context.Context) (T, error)

	ctx    context.Context // of the starts: ends with the pool
	cancel context.CancelFunc
	wake   chan struct{}
	wg     sync.WaitGroup

	mu    sync.Mutex
	ready []*slot[T] // oldest first
}

// NewSpares makes an empty pool; the first [Spares.Refill] fills it. room tells
// how many there may be at the moment, besides the limits; start starts one and
// tells of its own failures.
func NewSpares[T Chrome](limits Limits, room func() int, start func(context.Context) (T, error)) *Spares[T] {
	p := &Spares[T]{limits: limits, room: room, start: start, wake: make(chan struct{}, 1)}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(p.run)
	return p
}

// Size is how many it is meant to keep.
func (p *Spares[T]) Size() int { return p.limits.Size }

// Refill has what is missing started. It does not wait.
func (p *Spares[T]) Refill() {
	select {
	case p.wake <- struct{}{}:
	default: // it has been told
	}
}

// Take hands out the oldest spare, if one is ready. It is the caller's from here
// on; nothing is started in its place before the next Refill.
func (p *Spares[T]) Take() (chrome T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.ready {
		if !dead(s.chrome) { // its watch may not have come to it yet
			return p.remove(i), true
		}
	}
	return chrome, false
}

// Keep ends all but n, for what they hold is needed elsewhere. It waits.
func (p *Spares[T]) Keep(n int) {
	p.mu.Lock()
	var over []T
	for len(p.ready) > max(n, 0) {
		over = append(over, p.remove(0))
	}
	p.mu.Unlock()
	end(over...)
}

// Len is how many are ready.
func (p *Spares[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ready)
}

// Close ends every spare, those that are on their way too, and waits. From then
// on there are none.
func (p *Spares[T]) Close() {
	p.cancel()
	p.Keep(0)
	p.wg.Wait()
}

// run starts what is missing, whenever it is told to.
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

// wanted reports whether there is to be one more.
func (p *Spares[T]) wanted() bool {
	most := min(p.limits.Size, p.room())
	return p.ctx.Err() == nil && p.Len() < most
}

// put takes a spare in, unless it has come to be one too many.
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

// watch replaces a spare that dies or grows old.
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

// drop takes a spare out and reports whether it was still there.
func (p *Spares[T]) drop(s *slot[T]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.ready, s)
	if i >= 0 {
		p.remove(i)
	}
	return i >= 0
}

// remove takes a spare out; the caller holds the lock.
func (p *Spares[T]) remove(i int) T {
	s := p.ready[i]
	p.ready = slices.Delete(p.ready, i, i+1)
	close(s.taken)
	return s.chrome
}
