package session

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/state"
)

// Conn is one CDP client's connection, message by message.
type Conn = mux.Conn

// Eager is a Conn that can also send without waiting; see mux.Eager.
type Eager = mux.Eager

// Metered is a Conn that counts the memory of what it reads; see mux.Metered.
type Metered = mux.Metered

// Chrome is what a session needs of a live browser; see browser.Browser.
type Chrome interface {
	Engine() string
	Version() string
	UserAgent() string
	Protocol() string
	Dir() *browser.Dir
	Done() <-chan struct{}

	Door() mux.Door
	Serve(ctx context.Context, conn Conn, targetID string, door mux.Door) error
	CloseClients(ctx context.Context, code int, reason string) error
	Pages(ctx context.Context) ([]browser.Page, error)
	Navigate(ctx context.Context, url string) (string, error)
	Open(ctx context.Context, url string) error
	Screenshot(ctx context.Context) (jpeg []byte, url, title string, err error)
	Listen(tell func(browser.Happening), all bool) (stop func())

	CheckLogin(ctx context.Context, check browser.LoginCheck) (browser.LoginOutcome, error)
	Capture(ctx context.Context) (state.Document, error)
	Cookies(ctx context.Context) ([]state.Cookie, error)
	Passkeys() (held state.Passkeys, given bool)
	Verify(ctx context.Context, doc state.Document, report []state.Component) (state.Verification, error)
	VerifyThawed(ctx context.Context, doc state.Document) (state.Verification, error)
	Storage(ctx context.Context, origins []string) (browser.Storage, error)
	Environment(ctx context.Context) ([]browser.File, error)
	Precopy(ctx context.Context, c *browser.Copy) error
	Copy(ctx context.Context, c *browser.Copy) (stood time.Duration, err error)
	Trim(ctx context.Context)
	Memory() int64
	Freeze(ctx context.Context) error
	Thaw(ctx context.Context) error
	Wake(ctx context.Context) error
	Frozen() bool
	Close(ctx context.Context) (state.Datadir, error)
	Kill(ctx context.Context) error
}

// Spare is a live, empty Chrome, that becomes a session's once; see browser.Spare.
type Spare interface {
	Dir() *browser.Dir
	Done() <-chan struct{}
	Fresh(ctx context.Context, o browser.Options) (Chrome, error)
	Restored(ctx context.Context, doc state.Document, o browser.Options) (Chrome, []state.Component, error)
	Kill(ctx context.Context) error
}

// Standby is a live Chrome with an environment brought in, whose tabs wait: it
// becomes a session's once; see browser.Standby.
type Standby interface {
	Dir() *browser.Dir
	Done() <-chan struct{}
	Go(ctx context.Context) (Chrome, []state.Component, error)
	Kill(ctx context.Context) error
}

// Browsers starts Chromes, each in a run directory of its own.
type Browsers interface {
	// Has returns nil where an engine is there, else how to mend it.
	Has(engine string) error
	// NewDir makes a run directory; its Remove is the caller's.
	NewDir(name string) (*browser.Dir, error)
	// Left gives the run directories that a dead daemon left, its Chromes ended.
	Left(ctx context.Context) ([]*browser.Dir, error)
	// Spare starts an empty Chrome; the options are what it will be asked for, as
	// far as that is known.
	Spare(ctx context.Context, dir *browser.Dir, o browser.Options) (Spare, error)
	Fresh(ctx context.Context, dir *browser.Dir, o browser.Options) (Chrome, error)
	Restored(ctx context.Context, dir *browser.Dir, doc state.Document, o browser.Options) (Chrome, []state.Component, error)
	// Standby is Restored but for the tabs, which wait.
	Standby(ctx context.Context, dir *browser.Dir, doc state.Document, o browser.Options) (Standby, error)
}

// Chromes is [Browsers] over a real launcher.
type Chromes struct {
	Starter *browser.Starter
}

// Has returns nil where the engine's binary was found.
func (c Chromes) Has(engine string) error {
	if engine == browser.EngineShell {
		return c.Starter.Launcher.HasShell()
	}
	return nil
}

// NewDir makes a run directory.
func (c Chromes) NewDir(name string) (*browser.Dir, error) { return c.Starter.Launcher.NewDir(name) }

// Left ends what a dead daemon left running and gives its run directories.
func (c Chromes) Left(ctx context.Context) ([]*browser.Dir, error) {
	names, err := c.Starter.Launcher.Sweep(ctx)
	if err != nil {
		return nil, err
	}
	dirs := make([]*browser.Dir, 0, len(names))
	for _, name := range names {
		dir, err := c.Starter.Launcher.OldDir(name)
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

// Standby starts Chrome on an unpacked environment, to wait there.
func (c Chromes) Standby(ctx context.Context, dir *browser.Dir, doc state.Document, o browser.Options) (Standby, error) {
	p, err := c.Starter.Standby(ctx, dir, doc, o)
	if err != nil {
		return nil, err
	}
	return standby{p}, nil
}

// standby is [Standby] over a real one.
type standby struct{ *browser.Standby }

func (p standby) Go(ctx context.Context) (Chrome, []state.Component, error) {
	b, report, err := p.Standby.Go(ctx)
	if err != nil {
		return nil, nil, err
	}
	return b, report, nil
}

// spare is [Spare] over a real one.
type spare struct{ *browser.Spare }

func (p spare) Fresh(ctx context.Context, o browser.Options) (Chrome, error) {
	b, err := p.Spare.Fresh(ctx, o)
	if err != nil {
		return nil, err // not a nil *Browser in a Chrome
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
	_ Browsers = Chromes{}
)
