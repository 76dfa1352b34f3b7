package session

import (
	"context"
	"strings"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

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

// takeSpare takes a spare for a session of that engine with these overrides; nil,
// and why, where none can serve. Where none are kept there is no reason to report.
func (s *Service) takeSpare(engine string, o state.Overrides) (spare *spareChrome, why string) {
	if !s.capacity.KeepsSpares(engine) {
		return nil, ""
	}
	if why := onlyAtStart(engine, o, state.Overrides{}); why != "" {
		return nil, why
	}
	spare, ok := s.capacity.TakeSpare(engine)
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
