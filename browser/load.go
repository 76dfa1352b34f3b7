package browser

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/restore"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// restoreDeadline bounds a whole restore. A Chrome that hangs is given up.
const restoreDeadline = 60 * time.Second

// hold pauses every tab and service worker that Chrome opens from here on, before its first
// request (Target.setAutoAttach with waitForDebuggerOnStart), until release.
func (s *Standby) hold(ctx context.Context) error {
	const op = "browser.restore"
	b := s.b
	err := alive(ctx, b)
	if err == nil {
		err = b.initialiseTargets(ctx)
	}
	if err != nil {
		return err
	}
	if s.blank, err = capture.Pages(ctx, b.driver); err != nil {
		return fault.Wrap(err, fault.BrowserFailed, op, "Chrome did not list its tabs")
	}
	if len(s.blank) == 0 {
		return fault.New(fault.BrowserFailed, op, "Chrome has no tab")
	}
	b.targets.HoldTabs(b.ctx, true)
	s.held, err = b.environment().Hold(ctx)
	return fault.Wrap(err, fault.BrowserFailed, op, "Chrome's tabs could not be paused")
}

// load makes the running Chrome open the profile in the user data directory, and applies
// the state that the profile lacks. enter moves the profile's files into the spare's; nil:
// Chrome opens it as another one. unknown are the IDs of the extensions that the profile
// does not know; load loads them too.
func (s *Standby) load(ctx context.Context, enter func() (tabs int, err error), unknown []string) error {
	b, doc := s.b, s.doc
	missing := sync.OnceValues(func() ([]state.Component, error) { return b.environment().ApplyMissing(ctx, doc) })
	var err error
	if enter != nil {
		err = s.joinWindow(ctx, enter, missing)
	} else {
		err = s.openProfile(ctx)
	}
	if err != nil {
		return err
	}
	downloads := make(chan error, 1)
	if b.entered {
		downloads <- nil // set when the spare started
	} else {
		b.background.Go(func() { downloads <- keepDownloads(ctx, b.driver, b.dir) }) // for this profile; otherwise it uses Chrome's default folder
	}
	b.mux.Permissions.SetGranted(doc.Permissions)
	s.report = regrant(ctx, b.driver, doc.Permissions)
	lines, err := b.extensions.restore(ctx, s.held, doc, unknown)
	if err != nil {
		return err
	}
	s.report = append(s.report, lines...)
	applied, err := missing()
	if err != nil {
		return err
	}
	if b.entered {
		applied = markMerged(applied)
	}
	s.report = append(s.report, applied...)
	return <-downloads
}

// joinWindow makes the environment enter the spare's profile, whose tabs are s.blank.
// missing applies what the profile lacks.
func (s *Standby) joinWindow(ctx context.Context, enter func() (tabs int, err error), missing func() ([]state.Component, error)) error {
	b := s.b
	tabs, err := enter()
	if err != nil {
		return err
	}
	carried := make(chan error, 1)
	b.background.Go(func() { // while the tabs join
		err := profile.Carry(b.dir.Profile())
		carried <- err
		if err == nil && !b.environment().LacksStorage(s.doc) {
			_, _ = missing() // load reads the result
		}
	})
	leftOver, err := s.held.AwaitJoined(ctx, tabs, s.tabs, s.blank[0])
	if leftOver {
		b.mux.HidePage(s.blank[0].TargetID)
		b.tabs.leftover.tabs = s.blank
	}
	return errors.Join(tabsFailed(err), <-carried)
}

// tabsFailed is the error of a restore whose tabs did not open.
func tabsFailed(err error) error {
	return fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the environment's tabs did not open")
}

// openProfile makes Chrome open the environment's profile beside the empty one, whose tabs
// are s.blank.
func (s *Standby) openProfile(ctx context.Context) error {
	b, command := s.b, []string{"--profile-directory=" + profile.Default}
	if s.tabs != restore.SourceProfile {
		command = append(command, blankURL)
	}
	err := b.process.SendCommandLine(ctx, command...)
	switch {
	case err != nil:
	case s.tabs == restore.SourceProfile:
		err = s.held.Await(ctx, len(s.doc.Tabs))
	default:
		err = s.held.AwaitAll(ctx, len(s.blank))
	}
	if err != nil {
		return tabsFailed(err)
	}
	for _, p := range s.blank {
		b.mux.HideContext(p.BrowserContextID)
	}
	b.tabs.leftover.tabs = s.blank
	return nil
}

// release lets the paused tabs run, so that they load.
func (s *Standby) release(ctx context.Context) error {
	b, held := s.b, s.held
	ctx, cancel := context.WithTimeout(ctx, restoreDeadline)
	defer cancel()
	var foreign []target.ID
	if mux.TargetPolicy {
		foreign = held.TabsWithForeignHistory(ctx)
	}
	lines, err := held.Release(ctx, s.doc, s.tabs)
	if err != nil {
		return fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the paused tabs could not be released")
	}
	b.guard.prune(foreign, b.background.Go)
	s.report = append(s.report, lines...)
	b.targets.HoldTabs(b.ctx, false)
	b.background.Go(func() { held.Settle(b.ctx) })
	if b.late != nil {
		b.background.Go(b.fillCaches)
	}
	b.background.Go(func() {
		b.mux.Clients.WaitIdle(b.ctx)
		_ = b.tabs.closeLeftover(b.ctx) // on an error the next caller of closeLeftover tries again
	})
	return nil
}

// environment returns the browser as package restore needs it.
func (b *Browser) environment() restore.Environment {
	return restore.Environment{Driver: b.driver, Browser: restoreBrowser{b}, Targets: b.targets, Life: b.ctx, Baseline: &b.baseline,
		PendingTabs: &b.pendingTabs, UserDataDir: b.dir.Profile(), Shell: b.shell(), Now: b.now}
}

// restoreBrowser implements the methods of the browser that package restore needs.
type restoreBrowser struct{ b *Browser }

var _ restore.Browser = restoreBrowser{}

func (r restoreBrowser) AllowedURL(url string) bool { return r.b.mux.Addresses.Allowed(url) }
func (r restoreBrowser) ForeignURL(url string) bool { return r.b.mux.Addresses.Foreign(url) }
func (r restoreBrowser) StayAttached() bool         { return r.b.passkeys.authenticators != nil }
func (r restoreBrowser) Go(f func())                { r.b.listeners.Go(f) }
func (r restoreBrowser) CloseTab(ctx context.Context, id target.ID) error {
	return r.b.tabs.close(ctx, id)
}
