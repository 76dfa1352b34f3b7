package restore

import (
	"context"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/session/browsers"
)

// startFresh starts an empty environment, in a spare if one is ready.
func (r *Restorer) startFresh(ctx context.Context, q Request) (StartResult, error) {
	if spare, _ := r.takeSpare(q.Owner, q.Engine, q.Overrides); spare != nil {
		s, err := r.startFreshIn(ctx, spare.Dir(), q, spare.Fresh)
		if err == nil {
			return s, nil
		}
		r.dropSpare(ctx, spare, err)
		if !chromeFailed(ctx, err) {
			return StartResult{}, err
		}
	}
	r.ready.FreeCapacity(ctx)
	dir, err := r.browsers.NewDir()
	if err != nil {
		return StartResult{}, err
	}
	s, err := r.startFreshIn(ctx, dir, q, func(ctx context.Context, o browser.Options) (browsers.Chrome, error) {
		return r.browsers.Fresh(ctx, dir, o)
	})
	if err != nil {
		r.remove(dir)
		return StartResult{}, err
	}
	return s, nil
}

// startFreshIn installs the extensions in a run directory and starts Chrome there.
func (r *Restorer) startFreshIn(ctx context.Context, dir *browser.Dir, q Request, start func(context.Context, browser.Options) (browsers.Chrome, error)) (StartResult, error) {
	installed, _, err := r.install(ctx, dir, nil, q.Extensions)
	if err != nil {
		return StartResult{}, err
	}
	chrome, err := start(ctx, q.options(installed))
	if err != nil {
		return StartResult{}, err
	}
	return StartResult{Chrome: chrome, Overrides: q.Overrides, Extensions: installed}, nil
}
