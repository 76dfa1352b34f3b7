package restore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/browsers"
	"github.com/stasisd/stasis/state"
)

// standbyDeadline is how long a standby may take to start. On a busy machine it takes a minute,
// because at first it gets a tenth of the ordinary share of the processors.
const standbyDeadline = 5 * time.Minute

// Standby is a Chrome that has loaded an environment and holds its tabs.
type Standby struct {
	browsers.Standby
	env    environment
	engine string
	clear  func(*browser.Dir)
}

// Kill ends the standby and removes its run directory.
func (p *Standby) Kill(ctx context.Context) error {
	err := p.Standby.Kill(ctx)
	p.clear(p.Dir())
	return err
}

// StartStandby starts a Chrome with a snapshot and holds its tabs. Extensions may connect to
// what limits allows until a session takes it. It serves a request
// that has no overrides, tabs, origins or passkeys, and the same hosts in its egress, if any.
func (r *Restorer) StartStandby(ctx context.Context, row profiles.Snapshot, engine string, limits browser.Egress) (_ *Standby, err error) {
	ctx, cancel := context.WithTimeout(ctx, standbyDeadline)
	defer cancel()
	release, err := r.archives.Hold(ctx, row)
	if err != nil {
		return nil, err
	}
	defer release()
	saved, err := r.archives.Open(ctx, row)
	if err != nil {
		return nil, err
	}
	dir, err := r.browsers.NewDir()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			r.remove(dir)
		}
	}()
	q := Request{Engine: engine, RestoreTabs: true, Egress: limits}
	u, err := r.unpack(ctx, dir, q, saved, false)
	if err != nil {
		return nil, err
	}
	defer u.release()
	o := q.options(u.installed)
	o.Background = true
	standby, err := r.browsers.Standby(ctx, dir, u.doc, o)
	if err != nil {
		return nil, err
	}
	return &Standby{Standby: standby, env: u, engine: engine, clear: r.remove}, nil
}

// fromStandby restores a snapshot in its standby. A nil Chrome and a nil error mean that
// none can serve. why is then the reason for the report, or "".
func (r *Restorer) fromStandby(ctx context.Context, q Request, row profiles.Snapshot) (f Files, why string, err error) {
	standby, ok, why := r.ready.TakeStandby(row.ID, q.Engine, func(p *Standby) string {
		return mismatch("standby", readyChrome{engine: p.engine, overrides: p.env.overrides, extensions: p.env.installed,
			passkeys: p.env.doc.Passkeys, enabled: p.env.doc.Passkeys.EnabledFor(nil), egress: p.Egress()}, q)
	})
	if !ok {
		return f, why, nil
	}
	if err := standby.LimitEgress(q.Egress); err != nil {
		r.kill(ctx, standby)
		return f, "", err
	}
	if err := standby.SetLimits(q.Limits); err != nil {
		r.kill(ctx, standby)
		return f, "the standby Chrome could not get the session's limits: " + fault.MessageOf(err), nil
	}
	chrome, lines, err := standby.Activate(ctx)
	if err == nil {
		f = standby.env.started(chrome, lines)
		f.path = PathStandby
		return f, "", nil
	}
	r.kill(ctx, standby)
	if !chromeFailed(ctx, err) {
		return f, "", err
	}
	r.log.Warn("a standby Chrome failed; the snapshot is restored from the archive", "snapshot", row.ID, "error", err)
	return f, "the standby Chrome failed: " + fault.MessageOf(err), nil
}

// readyChrome is what a parked Chrome or a standby has.
type readyChrome struct {
	engine     string
	overrides  state.Overrides
	extensions []state.Extension
	passkeys   state.Passkeys
	enabled    bool // pages have the passkeys
	egress     browser.Egress
}

// mismatch says why a kept Chrome of this kind ("parked" or "standby") cannot serve a
// request; "" if it can.
func mismatch(kind string, has readyChrome, q Request) string {
	switch other := q.Overrides.WithDefaults(has.overrides).DifferingNames(has.overrides); {
	case !q.RestoreTabs:
		return "restore_tabs is false, and a " + kind + " Chrome has its tabs open"
	case !q.Origins.All():
		return "origins are selected, and a " + kind + " Chrome has loaded all of them"
	case has.engine != q.Engine:
		return "the " + kind + " Chrome is of the " + has.engine + " engine, but the request names " + q.Engine
	case (has.egress.HasHosts() || q.Egress.HasHosts()) && !has.egress.Equal(q.Egress):
		// Chrome keeps for a while what names it has looked up, and those that do not exist. A
		// connection to a host that is denied now may be open.
		return "the " + kind + " Chrome ran with other hosts in its egress"
	case len(other) > 0:
		return "the " + kind + " Chrome was started with other overrides: " + strings.Join(other, ", ")
	case missingExtension(has.extensions, q.Extensions) != "":
		return "the " + kind + " Chrome does not have extension " + missingExtension(has.extensions, q.Extensions) + " in the requested version"
	case has.passkeys.EnabledFor(q.Passkeys) != has.enabled:
		return "the " + kind + " Chrome runs with another passkeys setting"
	}
	return ""
}

// missingExtension returns the ID of the first named extension that a Chrome does not
// have in that version; "" if it has all.
func missingExtension(has []state.Extension, named []profiles.Extension) string {
	for _, n := range named {
		if !slices.ContainsFunc(has, func(e state.Extension) bool { return e.ID == n.ID && e.SHA256 == n.SHA256 }) {
			return n.ID
		}
	}
	return ""
}
