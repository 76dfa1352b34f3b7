package browser

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/browser/restore"
	"github.com/stasisd/stasis/fault"
)

// restoreDeadline bounds a whole restore. A Chrome that hangs is given up.
const restoreDeadline = 60 * time.Second

// load makes the running Chrome open the profile in the user data directory, and applies
// the state that the profile lacks. Every tab and service worker of the profile is paused
// before its first request (Target.setAutoAttach with waitForDebuggerOnStart), until
// release. unknown are the IDs of the extensions that the profile does not know; load
// loads them too.
func (s *Standby) load(ctx context.Context, o Options, enter func() (tabs int, err error), unknown []string) error {
	const op = "browser.restore"
	b, doc := s.b, s.doc
	ctx, cancel := context.WithTimeout(ctx, restoreDeadline)
	defer cancel()
	spares, err := capture.Pages(ctx, b.driver)
	if err != nil {
		return fault.Wrap(err, fault.BrowserFailed, op, "Chrome did not list its tabs")
	}
	b.targets.HoldTabs(b.ctx, true)
	if s.held, err = b.environment().Hold(ctx); err != nil {
		return fault.Wrap(err, fault.BrowserFailed, op, "Chrome's tabs could not be paused")
	}
	s.tabs = restore.SourceOf(doc, o.RestoreTabs)
	if enter != nil {
		var tabs int
		if tabs, err = enter(); err == nil {
			err = s.held.AwaitJoined(ctx, tabs, s.tabs, spares[0])
		}
	} else {
		err = s.openProfile(ctx, spares)
	}
	if err != nil {
		return fault.Wrap(err, fault.BrowserFailed, op, "the environment's tabs did not open")
	}
	downloads := make(chan error, 1)
	b.background.Go(func() { downloads <- keepDownloads(ctx, b.driver, b.dir) }) // for this profile; otherwise it uses Chrome's default folder
	b.mux.Permissions.SetGranted(doc.Permissions)
	s.report = regrant(ctx, b.driver, doc.Permissions)
	lines, err := b.extensions.restore(ctx, s.held, doc, unknown)
	if err != nil {
		return err
	}
	s.report = append(s.report, lines...)
	applied, err := b.environment().ApplyMissing(ctx, doc)
	if err != nil {
		return err
	}
	if b.entered {
		applied = markMerged(applied)
	}
	s.report = append(s.report, applied...)
	return <-downloads
}

// openProfile makes Chrome open the environment's profile beside the empty one, whose tabs
// are spares.
func (s *Standby) openProfile(ctx context.Context, spares []*target.Info) error {
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
		err = s.held.AwaitAll(ctx, len(spares))
	}
	if err != nil {
		return err
	}
	for _, p := range spares {
		b.mux.HideContext(p.BrowserContextID)
	}
	b.tabs.leftover.tabs = spares
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
