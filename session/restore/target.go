package restore

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/state"
)

// target is what an archive is restored into: an empty Chrome, which may still be
// starting, and its run directory. It belongs to one restore.
type target struct {
	r        *Restorer
	engine   string
	dir      *browser.Dir
	at       *browser.Dir    // where the environment is unpacked
	made     state.Overrides // what the Chrome was started with
	warm     bool            // it is a spare that was ready
	starting chan start      // nil once it is up
	spare    browsers.Spare  // nil where a Chrome starts on the environment itself
}

// start is the outcome of a start.
type start struct {
	spare browsers.Spare
	err   error
}

// inSpare is the target of a spare that is ready.
func inSpare(r *Restorer, p *Spare, engine string) *target {
	return &target{r: r, engine: engine, dir: p.Dir(), at: browser.Landing(p.Dir(), engine), warm: true, spare: p.Spare}
}

// inStarting is a target whose Chrome is being started, beside the caller.
func inStarting(ctx context.Context, r *Restorer, engine string, o state.Overrides) (*target, error) {
	r.ready.MakeRoom(ctx)
	dir, err := r.browsers.NewDir()
	if err != nil {
		return nil, err
	}
	t := &target{r: r, engine: engine, dir: dir, at: browser.Landing(dir, engine), made: o, starting: make(chan start, 1)}
	go func() { // await, which every path calls, waits for it
		p, err := r.browsers.Spare(ctx, dir, atStart(engine, o))
		t.starting <- start{p, err}
	}()
	return t, nil
}

// onProfile is a target without a Chrome: one is to start on the environment.
func onProfile(r *Restorer, engine string) (*target, error) {
	dir, err := r.browsers.NewDir()
	return &target{r: r, engine: engine, dir: dir, at: dir}, err
}

// atStart are the options of an empty Chrome that is to have these overrides.
func atStart(engine string, o state.Overrides) browser.Options {
	return browser.Options{Engine: engine, Overrides: browser.AtStart(engine, o)}
}

// await waits until the Chrome is up.
func (t *target) await() error {
	if t.starting == nil {
		return nil
	}
	is := <-t.starting
	t.starting, t.spare = nil, is.spare
	return is.err
}

// adapt makes sure that the Chrome runs with the overrides that it must be started
// with: another takes its place where it does not. Where that was a spare, why
// says why.
func (t *target) adapt(ctx context.Context, o state.Overrides) (why string, err error) {
	if err := t.await(); err != nil {
		return "", err
	}
	differs := onlyAtStart(t.engine, o, t.made)
	if differs == "" || t.spare == nil {
		return "", nil
	}
	if err := t.spare.Kill(ctx); err != nil {
		return "", err
	}
	if t.warm {
		why = differs
	}
	t.spare, t.made, t.warm = nil, o, false
	t.spare, err = t.r.browsers.Spare(ctx, t.dir, atStart(t.engine, o))
	return why, err
}

// load opens the environment that was unpacked to the run directory.
func (t *target) load(ctx context.Context, doc state.Document, o browser.Options) (browsers.Chrome, []state.Component, error) {
	if t.spare == nil {
		return t.r.browsers.Restored(ctx, t.dir, doc, o)
	}
	return t.spare.Restored(ctx, doc, o)
}

// abandon ends the Chrome and removes the run directory.
func (t *target) abandon(ctx context.Context) {
	if t.await() == nil && t.spare != nil && !t.r.kill(ctx, t.spare) {
		return
	}
	t.r.remove(t.dir)
}
