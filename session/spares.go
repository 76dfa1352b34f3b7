package session

import (
	"context"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser"
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

// newSpare starts a spare for the pool.
func (s *Service) newSpare(ctx context.Context) (*spareChrome, error) {
	ctx, cancel := context.WithTimeout(ctx, spareDeadline)
	defer cancel()
	dir, err := s.newDir()
	if err == nil {
		var spare Spare
		if spare, err = s.Browsers.Spare(ctx, dir, browser.Options{}); err == nil {
			return &spareChrome{Spare: spare, clear: s.clear}, nil
		}
		s.clear(dir)
	}
	if s.ctx.Err() == nil {
		s.Log.Warn("a spare Chrome could not be started", "error", err)
	}
	return nil, err
}

// spareRoom is how many spares there may be: each stands in a place that no
// session has taken, and there are none where memory is short.
func (s *Service) spareRoom() int {
	if s.Room != nil && !s.Room() {
		return 0
	}
	return s.slots.left()
}

// takeSpare takes a spare for a session of that engine with these overrides; nil,
// and why, where none can serve. Where none are kept that is no reason to tell:
// so of the shell, which starts on an environment and cannot take one later.
func (s *Service) takeSpare(engine string, o state.Overrides) (spare *spareChrome, why string) {
	if s.spares.Size() == 0 || engine == browser.EngineShell {
		return nil, ""
	}
	if why := onlyAtStart(o, state.Overrides{}); why != "" {
		return nil, why
	}
	spare, ok := s.spares.Take()
	if !ok {
		return nil, "no spare Chrome was ready"
	}
	return spare, ""
}

// onlyAtStart names what a Chrome that was started with other overrides cannot
// give its pages; "" for nothing.
func onlyAtStart(o, made state.Overrides) string {
	names := browser.AtStart(o).Differ(browser.AtStart(made))
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
