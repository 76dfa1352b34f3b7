package session

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/state"
)

// ground is what an environment is brought into: an empty Chrome, that may still
// be on its way, and its run directory. It belongs to one restore.
type ground struct {
	svc    *Service
	engine string
	dir    *browser.Dir
	at     *browser.Dir    // where the environment is unpacked
	made   state.Overrides // what the Chrome was started with
	warm   bool            // it is a spare from the pool
	coming chan started    // nil once it is there
	spare  Spare           // nil where a Chrome starts on the environment itself
}

// started is the outcome of a start.
type started struct {
	spare Spare
	err   error
}

// onSpare is the ground of a spare that is there.
func (s *Service) onSpare(p *spareChrome, engine string) *ground {
	return &ground{svc: s, engine: engine, dir: p.Dir(), at: browser.Landing(p.Dir(), engine), warm: true, spare: p.Spare}
}

// starting is a ground whose Chrome is being started, beside the caller.
func (s *Service) starting(ctx context.Context, engine string, o state.Overrides) (*ground, error) {
	s.capacity.MakeRoom(ctx)
	dir, err := s.newDir()
	if err != nil {
		return nil, err
	}
	g := &ground{svc: s, engine: engine, dir: dir, at: browser.Landing(dir, engine), made: o, coming: make(chan started, 1)}
	go func() {
		p, err := s.Browsers.Spare(ctx, dir, atStart(engine, o))
		g.coming <- started{p, err}
	}()
	return g, nil
}

// still is a ground on which no Chrome runs: it is to start on the environment.
func (s *Service) still(engine string) (*ground, error) {
	dir, err := s.newDir()
	return &ground{svc: s, engine: engine, dir: dir, at: dir}, err
}

// atStart are the options of an empty Chrome that is to have these overrides.
func atStart(engine string, o state.Overrides) browser.Options {
	return browser.Options{Engine: engine, Overrides: browser.AtStart(engine, o)}
}

// await waits for the Chrome to come up.
func (g *ground) await() error {
	if g.coming == nil {
		return nil
	}
	is := <-g.coming
	g.coming, g.spare = nil, is.spare
	return is.err
}

// suit makes sure that the Chrome runs with the overrides that it must be
// started with: another takes its place where it does not. It says why, where
// that was a spare.
func (g *ground) suit(ctx context.Context, o state.Overrides) (why string, err error) {
	if err := g.await(); err != nil {
		return "", err
	}
	differs := onlyAtStart(g.engine, o, g.made)
	if differs == "" || g.spare == nil {
		return "", nil
	}
	if err := g.spare.Kill(ctx); err != nil {
		return "", err
	}
	if g.warm {
		why = differs
	}
	g.spare, g.made, g.warm = nil, o, false
	g.spare, err = g.svc.Browsers.Spare(ctx, g.dir, atStart(g.engine, o))
	return why, err
}

// restored brings the environment in that was unpacked to the directory.
func (g *ground) restored(ctx context.Context, doc state.Document, o browser.Options) (Chrome, []state.Component, error) {
	if g.spare == nil {
		return g.svc.Browsers.Restored(ctx, g.dir, doc, o)
	}
	return g.spare.Restored(ctx, doc, o)
}

// abandon ends the Chrome and removes the directory.
func (g *ground) abandon(ctx context.Context) {
	if g.await() == nil && g.spare != nil {
		if err := g.spare.Kill(context.WithoutCancel(ctx)); err != nil {
			g.svc.Log.Error("a Chrome could not be ended", "error", err)
			return
		}
	}
	g.svc.clear(g.dir)
}
