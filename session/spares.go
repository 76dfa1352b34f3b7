package session

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/pool"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// spareDeadline bounds how long a spare may take to come up.
const spareDeadline = time.Minute

// spareChrome is a spare in the pool: it removes its run directory when it is
// ended.
type spareChrome struct {
	Spare
	clear func(*browser.Dir)
}

// Kill ends the spare and removes its directory.
func (p *spareChrome) Kill(ctx context.Context) error {
	if err := p.Spare.Kill(ctx); err != nil {
		return err
	}
	p.clear(p.Dir())
	return nil
}

// sparePools are the pools of spares, by engine.
type sparePools map[string]*pool.Spares[*spareChrome]

func (p sparePools) len() (n int) {
	for _, spares := range p {
		n += spares.Len()
	}
	return n
}

// refill has what is missing started.
func (p sparePools) refill() {
	for _, spares := range p {
		spares.Refill()
	}
}

// newSpares makes the pool of an engine.
func (s *Service) newSpares(engine string, l pool.Limits) {
	s.spares[engine] = pool.NewSpares(l, func() int { return s.spareRoom(engine) },
		func(ctx context.Context) (*spareChrome, error) { return s.newSpare(ctx, engine) })
}

// newSpare starts a spare for the pool of an engine.
func (s *Service) newSpare(ctx context.Context, engine string) (*spareChrome, error) {
	select { // one at a time: two pools would both take the last place
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, spareDeadline)
	defer cancel()
	dir, err := s.newDir()
	if err == nil {
		var spare Spare
		if spare, err = s.Browsers.Spare(ctx, dir, browser.Options{Engine: engine, Background: true}); err == nil {
			return &spareChrome{Spare: spare, clear: s.clear}, nil
		}
		s.clear(dir)
	}
	if !errors.Is(err, context.Canceled) { // else the daemon stops
		s.Log.Warn("a spare Chrome could not be started", "error", err)
	}
	return nil, err
}

// ahead is how many Chromes there may be ahead of need: each stands in a place
// that no session has taken, and there are none where memory is short.
func (s *Service) ahead() int {
	if s.Room != nil && !s.Room() {
		return 0
	}
	return s.slots.left()
}

// spareRoom is how many spares of an engine there may be: what standbys and those
// of the other engine leave; none where nobody has asked for the engine.
func (s *Service) spareRoom(engine string) int {
	s.mu.Lock()
	asked := s.asked[engine]
	s.mu.Unlock()
	if !asked {
		return 0
	}
	return s.ahead() - s.standbys.ready.Len() - s.spares.len() + s.spares[engine].Len()
}

// spared reports whether all spares are there that there should be, and how many
// that are at most.
func (s *Service) spared() (all bool, most int) {
	all = true
	for engine, spares := range s.spares {
		s.mu.Lock()
		asked := s.asked[engine]
		s.mu.Unlock()
		if asked {
			most += spares.Size()
			all = all && spares.Len() >= min(spares.Size(), s.spareRoom(engine))
		}
	}
	return all, most
}

// ask notes that sessions of an engine are asked for.
func (s *Service) ask(engine string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[engine] = true
}

// makeRoom ends what takes the room of a Chrome that is to start itself: first
// standbys, which fewest can use, then the spares that are over, and where memory
// is still short, parked ones, the oldest first. Their snapshots' files stay.
func (s *Service) makeRoom(ctx context.Context) {
	s.standbys.ready.Keep(s.ahead() - s.spares.len())
	for engine, spares := range s.spares {
		spares.Keep(s.spareRoom(engine))
	}
	for s.Room != nil && !s.Room() {
		evicted, err := s.parked.Evict(context.WithoutCancel(ctx))
		if err != nil {
			s.Log.Error("a parked Chrome could not be ended", "error", err)
		}
		if !evicted || err != nil {
			return
		}
	}
}

// replenish has what is missing started, spares first. It does not wait.
func (s *Service) replenish() {
	s.spares.refill()
	s.standbys.look()
}

// takeSpare takes a spare for a session of that engine with these overrides; nil,
// and why, where none can serve. Where none are kept that is no reason to tell.
func (s *Service) takeSpare(engine string, o state.Overrides) (spare *spareChrome, why string) {
	spares := s.spares[engine]
	if spares.Size() == 0 {
		return nil, ""
	}
	if why := onlyAtStart(engine, o, state.Overrides{}); why != "" {
		return nil, why
	}
	spare, ok := spares.Take()
	if !ok {
		return nil, "no spare Chrome was ready"
	}
	return spare, ""
}

// onlyAtStart names what a Chrome that was started with other overrides cannot
// give its pages; "" for nothing.
func onlyAtStart(engine string, o, made state.Overrides) string {
	names := browser.AtStart(engine, o).Differ(browser.AtStart(engine, made))
	if len(names) == 0 {
		return ""
	}
	return "Chrome takes " + strings.Join(names, ", ") + " only when it starts"
}

// spareFailed reports whether an error is that of a spare that died or hung, so
// that a cold start is to follow.
func spareFailed(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (fault.Is(err, fault.BrowserFailed) || fault.Is(err, fault.Timeout))
}

// dropSpare ends a spare that has failed, or whose session has come to nothing.
func (s *Service) dropSpare(ctx context.Context, spare *spareChrome, why error) {
	if spareFailed(ctx, why) {
		s.Log.Warn("a spare Chrome failed; another is started", "error", why)
	}
	if err := spare.Kill(context.WithoutCancel(ctx)); err != nil {
		s.Log.Error("a Chrome could not be ended", "error", err)
	}
}
