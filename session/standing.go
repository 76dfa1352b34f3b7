package session

import (
	"context"
	"strings"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/state"
)

// standbyDeadline bounds how long a standby Chrome may take to come up.
const standbyDeadline = 2 * time.Minute

// standbyChrome is a standby in the pool: what was unpacked into it, and, when it
// is ended, its run directory is removed.
type standbyChrome struct {
	Standby
	unpacked
	engine string
	clear  func(*browser.Dir)
}

// Kill ends the standby and removes its directory.
func (p *standbyChrome) Kill(ctx context.Context) error {
	if err := p.Standby.Kill(ctx); err != nil {
		return err
	}
	p.clear(p.Dir())
	return nil
}

// standUp brings a snapshot up in a Chrome of its own, but for its tabs, which
// wait: as a create would that asks for nothing of its own.
func (s *Service) standUp(ctx context.Context, snap profiles.Snapshot, engine string) (_ *standbyChrome, err error) {
	ctx, cancel := context.WithTimeout(ctx, standbyDeadline)
	defer cancel()
	release, err := s.hold(ctx, snap, "restored")
	if err != nil {
		return nil, err
	}
	defer release()
	saved, err := s.Vault.Open(ctx, locationOf(snap.UserID, snap.SessionID), snap.ID)
	if err != nil {
		return nil, err
	}
	dir, err := s.newDir()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.clear(dir)
		}
	}()
	r := Create{Engine: engine, RestoreTabs: true}
	u, err := s.unpack(ctx, dir, r, saved, nil)
	if err != nil {
		return nil, err
	}
	defer u.leave()
	r.installed = u.installed
	o := r.browser()
	o.Background = true
	standby, err := s.Browsers.Standby(ctx, dir, u.doc, o)
	if err != nil {
		return nil, err
	}
	return &standbyChrome{Standby: standby, unpacked: u, engine: engine, clear: s.clear}, nil
}

// fromStandby restores a snapshot in the Chrome that stands by with it. A nil
// Chrome and no error mean that none can serve: why says so where that is worth
// a word.
func (s *Service) fromStandby(ctx context.Context, r Create, snap profiles.Snapshot, named []profiles.Extension) (up upright, lines []state.Component, why string, err error) {
	standby, ok, why := s.capacity.TakeStandby(snap.ID, r.Engine, func(p *standbyChrome) string {
		return differs("standby", standing{engine: p.engine, overrides: p.overrides, extensions: p.installed,
			passkeys: p.doc.Passkeys, given: p.doc.Passkeys.Given(nil)}, r, named)
	})
	if !ok {
		return up, nil, why, nil
	}
	chrome, report, err := standby.Go(ctx)
	if err == nil {
		up, lines = standby.brought(chrome, report)
		up.path = PathStandby
		return up, lines, "", nil
	}
	if kerr := standby.Kill(context.WithoutCancel(ctx)); kerr != nil {
		s.Log.Error("a Chrome could not be ended", "error", kerr)
	}
	if !spareFailed(ctx, err) {
		return up, nil, "", err
	}
	s.Log.Warn("a standby Chrome failed", "snapshot", snap.ID, "error", err)
	return up, nil, "the standby Chrome failed: " + fault.MessageOf(err), nil
}

// standing is what a Chrome has that came up for nobody in particular with an
// environment: one that was parked, or that stands by.
type standing struct {
	engine     string
	overrides  state.Overrides
	extensions []state.Extension
	passkeys   state.Passkeys
	given      bool // pages have the passkeys
}

// differs says why such a Chrome, of some kind, cannot serve a create; "" where
// it can.
func differs(kind string, has standing, r Create, named []profiles.Extension) string {
	switch other := r.Overrides.Over(has.overrides).Differ(has.overrides); {
	case !r.RestoreTabs:
		return "restore_tabs is false, and a " + kind + " Chrome has its tabs open"
	case !r.Origins.All():
		return "origins are selected, and a " + kind + " Chrome holds them all"
	case has.engine != r.Engine:
		return "the " + kind + " Chrome is of the " + has.engine + " engine, and " + r.Engine + " is to run"
	case len(other) > 0:
		return "the " + kind + " Chrome differs from what is asked for: " + strings.Join(other, ", ")
	case lacks(has.extensions, named) != "":
		return "the " + kind + " Chrome does not have extension " + lacks(has.extensions, named) + " in the version that is asked for"
	case has.passkeys.Given(r.Passkeys) != has.given:
		return "the " + kind + " Chrome runs with other passkeys"
	}
	return ""
}
