package restore

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/state"
)

// target is where an archive is restored: an empty Chrome, which may still be starting,
// and its run directory. It belongs to one restore.
type target struct {
	r           *Restorer
	owner       string // whose session it will be
	engine      string
	dir         *browser.Dir
	unpackDir   *browser.Dir     // where the archive is unpacked
	startedWith state.Overrides  // the overrides that the Chrome was started with
	warm        bool             // it is a spare that was ready
	gates       bool             // it starts with gates if it can
	starting    chan startResult // nil once it has started
	spare       browsers.Spare   // nil if Chrome starts on the unpacked profile itself
}

// startResult is the result of a start.
type startResult struct {
	spare browsers.Spare
	err   error
}

// spareTarget returns a target with a spare that is ready.
func spareTarget(r *Restorer, p *Spare, engine string) *target {
	return &target{r: r, engine: engine, dir: p.Dir(), unpackDir: browser.UnpackDir(p.Dir(), engine), warm: true, gates: true, spare: p.Spare}
}

// startingTarget returns a target whose Chrome starts in its own goroutine; see
// [browser.Options] for gates.
func startingTarget(ctx context.Context, r *Restorer, owner, engine string, o state.Overrides, gates bool) (*target, error) {
	r.ready.FreeCapacity(ctx)
	dir, err := r.browsers.NewDir()
	if err != nil {
		return nil, err
	}
	t := &target{r: r, owner: owner, engine: engine, dir: dir, unpackDir: browser.UnpackDir(dir, engine), startedWith: o, gates: gates, starting: make(chan startResult, 1)}
	go func() { // every path calls await, which waits for it
		p, err := r.browsers.Spare(ctx, dir, t.startOptions(o))
		t.starting <- startResult{p, err}
	}()
	return t, nil
}

// ungatedTarget returns a target that has no gates: a full Chrome that starts meanwhile, or
// a shell that load starts on the unpacked profile.
func ungatedTarget(ctx context.Context, r *Restorer, owner, engine string, o state.Overrides) (*target, error) {
	if engine != browser.EngineShell {
		return startingTarget(ctx, r, owner, engine, o, false)
	}
	dir, err := r.browsers.NewDir()
	return &target{r: r, owner: owner, engine: engine, dir: dir, unpackDir: dir}, err
}

// startOptions returns the options of an empty Chrome that will need these overrides.
func (t *target) startOptions(o state.Overrides) browser.Options {
	return browser.Options{Owner: t.owner, Engine: t.engine, Overrides: browser.StartOverrides(t.engine, o), Gates: t.gates}
}

// await waits until the Chrome has started.
func (t *target) await() error {
	if t.starting == nil {
		return nil
	}
	result := <-t.starting
	t.starting, t.spare = nil, result.spare
	return result.err
}

// adapt makes sure that the Chrome was started with those of the overrides that it can
// set only then. If not, it replaces the Chrome. If it replaced a spare, why is the
// reason.
func (t *target) adapt(ctx context.Context, o state.Overrides) (why string, err error) {
	if err := t.await(); err != nil {
		return "", err
	}
	differs := onlyAtStart(t.engine, o, t.startedWith)
	if differs == "" || t.spare == nil {
		return "", nil
	}
	if err := t.spare.Kill(ctx); err != nil {
		return "", err
	}
	if t.warm {
		why = differs
	}
	t.spare, t.startedWith, t.warm = nil, o, false
	t.spare, err = t.r.browsers.Spare(ctx, t.dir, t.startOptions(o))
	return why, err
}

// load loads the unpacked environment into the Chrome.
func (t *target) load(ctx context.Context, doc state.Document, o browser.Options) (browsers.Chrome, []state.Component, error) {
	if t.spare == nil {
		return t.r.browsers.Restored(ctx, t.dir, doc, o)
	}
	return t.spare.Restored(ctx, doc, o)
}

// abandon ends the Chrome and removes the run directory.
func (t *target) abandon(ctx context.Context) {
	if t.await() == nil && t.spare != nil {
		t.r.kill(ctx, t.spare)
	}
	t.r.remove(t.dir)
}
