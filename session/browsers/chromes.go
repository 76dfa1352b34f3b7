package browsers

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/state"
)

// Chromes is the [Launcher] of real Chromes.
type Chromes struct {
	Starter *browser.Starter
}

// Has returns nil if the engine's binary was found.
func (c Chromes) Has(engine string) error {
	if engine == browser.EngineShell {
		return c.Starter.Launcher.HasShell()
	}
	return nil
}

// CanLimitEgress returns nil if the daemon can put the limits in place.
func (c Chromes) CanLimitEgress(limits browser.Egress) error {
	return c.Starter.CanLimitEgress(limits)
}

// CanLimit returns nil if the limits can be put in place.
func (c Chromes) CanLimit(l browser.Limits) error { return c.Starter.CanLimit(l) }

// Yields reports whether an owner's Chromes get only what others leave of the processors.
func (c Chromes) Yields(owner string) bool { return c.Starter.Shares.Yields(owner) }

// NewDir makes a run directory. Its name is short because it holds Chrome's socket, whose
// path may have 107 bytes at most. The catalogue records to which session the directory
// belongs.
func (c Chromes) NewDir() (*browser.Dir, error) {
	return c.Starter.Launcher.NewDir(strings.ToLower(rand.Text()[:8]))
}

// EndOrphans ends the Chromes that a dead daemon left running and returns their run
// directories.
func (c Chromes) EndOrphans(ctx context.Context) ([]*browser.Dir, error) {
	names, err := c.Starter.Launcher.Sweep(ctx)
	if err != nil {
		return nil, err
	}
	dirs := make([]*browser.Dir, 0, len(names))
	for _, name := range names {
		dir, err := c.Starter.Launcher.LeftoverDir(name)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// Spare starts an empty Chrome.
func (c Chromes) Spare(ctx context.Context, dir *browser.Dir, o browser.Options) (Spare, error) {
	p, err := c.Starter.Spare(ctx, dir, o)
	if err != nil {
		return nil, err // not a nil *browser.Spare in a Spare
	}
	return spare{p}, nil
}

// Fresh starts Chrome on an empty environment.
func (c Chromes) Fresh(ctx context.Context, dir *browser.Dir, o browser.Options) (Chrome, error) {
	p, err := c.Spare(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	return p.Fresh(ctx, o)
}

// Restored starts Chrome on an unpacked environment.
func (c Chromes) Restored(ctx context.Context, dir *browser.Dir, doc state.Document, o browser.Options) (Chrome, []state.Component, error) {
	b, report, err := c.Starter.Restored(ctx, dir, doc, o)
	if err != nil {
		return nil, nil, err
	}
	return b, report, nil
}

// Standby starts Chrome on an unpacked environment and holds its tabs.
func (c Chromes) Standby(ctx context.Context, dir *browser.Dir, doc state.Document, o browser.Options) (Standby, error) {
	p, err := c.Starter.Standby(ctx, dir, doc, o)
	if err != nil {
		return nil, err
	}
	return standby{p}, nil
}

// standby implements [Standby] with browser.Standby.
type standby struct{ *browser.Standby }

func (p standby) Activate(ctx context.Context) (Chrome, []state.Component, error) {
	b, report, err := p.Standby.Activate(ctx)
	if err != nil {
		return nil, nil, err
	}
	return b, report, nil
}

// spare implements [Spare] with browser.Spare.
type spare struct{ *browser.Spare }

func (p spare) Fresh(ctx context.Context, o browser.Options) (Chrome, error) {
	b, err := p.Spare.Fresh(ctx, o)
	if err != nil {
		return nil, err // not a nil *browser.Browser in a Chrome
	}
	return b, nil
}

func (p spare) Restored(ctx context.Context, doc state.Document, o browser.Options) (Chrome, []state.Component, error) {
	b, report, err := p.Spare.Restored(ctx, doc, o)
	if err != nil {
		return nil, nil, err
	}
	return b, report, nil
}

var (
	_ Chrome   = (*browser.Browser)(nil)
	_ Launcher = Chromes{}
)
