package restore

import (
	"context"
	"strings"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/state"
)

// Spare is an empty Chrome that is kept ready.
type Spare struct {
	browsers.Spare
	clear func(*browser.Dir)
}

// Kill ends the spare and removes its run directory.
func (p *Spare) Kill(ctx context.Context) error {
	err := p.Spare.Kill(ctx)
	p.clear(p.Dir())
	return err
}

// StartSpare starts an empty Chrome that is kept ready. The first full one has no gates: it is
// ready sooner, because gates need the settings of an empty profile, and Chrome must start
// once more to write them.
func (r *Restorer) StartSpare(ctx context.Context, engine string) (*Spare, error) {
	dir, err := r.browsers.NewDir()
	if err != nil {
		return nil, err
	}
	spare, err := r.browsers.Spare(ctx, dir, browser.Options{Engine: engine, Gates: r.chromeReady.Load(), Background: true})
	if err != nil {
		r.remove(dir)
		return nil, err
	}
	if engine != browser.EngineShell {
		r.chromeReady.Store(true)
	}
	return &Spare{Spare: spare, clear: r.remove}, nil
}

// takeSpare takes a spare for a session with this engine and these overrides. If no spare
// can serve it, takeSpare returns nil and the reason. The reason is "" if no spares are
// kept for the engine. An owner that keeps the processors busy gets none, so that its creates
// do not use up the spares of others.
func (r *Restorer) takeSpare(owner, engine string, o state.Overrides) (spare *Spare, why string) {
	if !r.ready.KeepsSpares(engine) {
		return nil, ""
	}
	if why := onlyAtStart(engine, o, state.Overrides{}); why != "" {
		return nil, why
	}
	if r.browsers.Yields(owner) {
		return nil, "no spare Chrome was ready"
	}
	spare, ok := r.ready.TakeSpare(engine)
	if !ok {
		return nil, "no spare Chrome was ready"
	}
	return spare, ""
}

// dropSpare ends a spare that failed or whose restore failed.
func (r *Restorer) dropSpare(ctx context.Context, spare *Spare, why error) {
	if chromeFailed(ctx, why) {
		r.log.Warn("a spare Chrome failed; another is started", "error", why)
	}
	r.kill(ctx, spare)
}

// onlyAtStart names the overrides in o that a Chrome started with made cannot change any
// more; "" for none.
func onlyAtStart(engine string, o, made state.Overrides) string {
	names := browser.StartOverrides(engine, o).DifferingNames(browser.StartOverrides(engine, made))
	if len(names) == 0 {
		return ""
	}
	return "Chrome can set " + strings.Join(names, ", ") + " only when it starts"
}

// chromeFailed reports whether err says that a Chrome died or did not answer, so that a
// slower path can be tried.
func chromeFailed(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (fault.Is(err, fault.BrowserFailed) || fault.Is(err, fault.Timeout))
}
