package capacity

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser/pool"
)

// spareDeadline bounds how long a spare may take to start. On a busy machine it takes a minute,
// because at first it gets a tenth of the ordinary share of the processors.
const spareDeadline = 5 * time.Minute

// spares holds the pools of spares, one for each engine.
type spares[S pool.Chrome] struct {
	limit func() int // how many there may be of all engines together
	start func(ctx context.Context, engine string) (S, error)
	log   *slog.Logger
	turn  chan struct{} // full while a spare is being started
	pools map[string]*pool.Spares[S]

	mu   sync.Mutex
	used map[string]bool // the engines of which spares are kept: the daemon's, and those that creates have named
}

func newSpares[S pool.Chrome](limits map[string]pool.Limits, engine string, limit func() int, start func(context.Context, string) (S, error), log *slog.Logger) *spares[S] {
	s := &spares[S]{limit: limit, start: start, log: log, turn: make(chan struct{}, 1), pools: map[string]*pool.Spares[S]{}, used: map[string]bool{engine: true}}
	for engine, l := range limits {
		s.pools[engine] = pool.NewSpares(l, func() int { return s.most(engine) },
			func(ctx context.Context) (S, error) { return s.startNext(ctx, engine) })
	}
	return s
}

// startNext starts a spare for the pool of an engine.
func (s *spares[S]) startNext(ctx context.Context, engine string) (spare S, err error) {
	select { // one at a time, or two pools would both take the last slot
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return spare, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, spareDeadline)
	defer cancel()
	spare, err = s.start(ctx, engine)
	if err != nil && !errors.Is(err, context.Canceled) { // canceled means that the daemon stops
		s.log.Warn("cannot start a spare Chrome; the next create starts its own", "error", err)
	}
	return spare, err
}

// most returns how many spares of an engine there may be: the limit minus the spares of
// other engines. It is 0 for an engine that no create has used.
func (s *spares[S]) most(engine string) int {
	if !s.isUsed(engine) {
		return 0
	}
	return s.limit() - s.len() + s.pools[engine].Len()
}

func (s *spares[S]) isUsed(engine string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[engine]
}

func (s *spares[S]) use(engine string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used[engine] = true
}

// complete reports whether all planned spares are ready, and the maximum number of
// spares.
func (s *spares[S]) complete() (all bool, most int) {
	all = true
	for engine, p := range s.pools {
		if s.isUsed(engine) {
			most += p.Size()
			all = all && p.Len() >= min(p.Size(), s.most(engine))
		}
	}
	return all, most
}

// size returns how many spares of an engine the settings allow.
func (s *spares[S]) size(engine string) int {
	if p := s.pools[engine]; p != nil {
		return p.Size()
	}
	return 0
}

func (s *spares[S]) take(engine string) (spare S, ok bool) {
	if p := s.pools[engine]; p != nil {
		return p.Take()
	}
	return spare, false
}

// trim ends surplus spares.
func (s *spares[S]) trim() {
	for engine, p := range s.pools {
		p.Keep(s.most(engine))
	}
}

func (s *spares[S]) len() (n int) {
	for _, p := range s.pools {
		n += p.Len()
	}
	return n
}

// refill starts missing spares. It does not wait.
func (s *spares[S]) refill() {
	for _, p := range s.pools {
		p.Refill()
	}
}

// close ends all spares, including those that are starting, and waits until they have
// ended.
func (s *spares[S]) close() {
	for _, p := range s.pools {
		p.Close()
	}
}

// ready returns how many spares of an engine there are.
func (s *spares[S]) ready(engine string) int {
	if p := s.pools[engine]; p != nil {
		return p.Len()
	}
	return 0
}
