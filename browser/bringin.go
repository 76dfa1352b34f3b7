package browser

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// bringInDeadline bounds the wait for a profile's first tab, which takes Chrome
// 70–250 ms, and restoreDeadline the whole of a restore: a Chrome that hangs is
// given up.
const (
	bringInDeadline = 20 * time.Second
	restoreDeadline = 60 * time.Second
)

// bringIn brings the profile in that lies in the user data directory, and lays
// the state down where the datadir lacks it. Every tab and service worker of the
// profile is held before its first request (Target.setAutoAttach with
// waitForDebuggerOnStart), until letGo. The extensions that the profile does not
// know are loaded by then.
func (s *Standby) bringIn(ctx context.Context, o Options, unknown []string) error {
	const op = "browser.restore"
	b, doc := s.b, s.doc
	ctx, cancel := context.WithTimeout(ctx, restoreDeadline)
	defer cancel()
	spares, err := capture.Pages(ctx, b.driver)
	if err != nil {
		return fault.Wrap(err, fault.BrowserFailed, op, "Chrome did not answer")
	}
	b.targets.HoldTabs(b.ctx, true)
	if s.held, err = b.hold(ctx); err != nil {
		return fault.Wrap(err, fault.BrowserFailed, op, "Chrome's tabs could not be held")
	}
	var command []string
	s.tabs, command = tabsOf(doc, o), []string{"--profile-directory=" + profile.Default}
	if s.tabs != tabsKept {
		command = append(command, blankURL)
	}
	if err := b.process.Ask(ctx, command...); err != nil {
		return fault.Wrap(err, fault.BrowserFailed, op, "Chrome did not take the profile")
	}
	if s.tabs == tabsKept {
		err = s.held.await(ctx, len(doc.Tabs))
	} else {
		err = s.held.awaitAll(ctx, len(spares))
	}
	if err != nil {
		return fault.Wrap(err, fault.BrowserFailed, op, "the profile did not come up")
	}
	for _, p := range spares {
		b.mux.HideContext(p.BrowserContextID)
	}
	b.leftover.tabs = spares
	downloads := make(chan error, 1)
	b.background.Go(func() { downloads <- b.keepDownloads(ctx) }) // of this profile: a new one has Chrome's own folder
	b.mux.Regrant(doc.Permissions)
	s.report = b.regrant(ctx, doc.Permissions)
	brought, err := b.bringExtensions(ctx, s.held, doc, unknown)
	if err != nil {
		return err
	}
	s.report = append(s.report, brought...)
	laid, err := b.overlay(ctx, doc)
	if err != nil {
		return err
	}
	s.report = append(s.report, laid...)
	return <-downloads
}

// letGo lets the tabs go.
func (s *Standby) letGo(ctx context.Context) error {
	b, held := s.b, s.held
	ctx, cancel := context.WithTimeout(ctx, restoreDeadline)
	defer cancel()
	leading := held.leading(ctx)
	var lines []state.Component
	var err error
	switch s.tabs {
	case tabsKept:
		lines = held.resume(ctx, s.doc, b.baseline.Broken.SessionStorage)
	case tabsUnread:
		lines, err = held.rescue(ctx, s.doc)
	case tabsStale:
		lines, err = held.renew(ctx, s.doc)
	case tabsNone:
		lines, err = held.leaveBlank(ctx, s.doc)
	}
	if err != nil {
		return fault.Wrap(err, fault.BrowserFailed, "browser.restore", "the tabs could not be let go")
	}
	b.prune(leading)
	s.report = append(s.report, lines...)
	b.targets.HoldTabs(b.ctx, false)
	b.background.Go(func() { held.settle(b.ctx) })
	b.background.Go(func() {
		b.mux.Lull(b.ctx)
		_ = b.alone(b.ctx) // else whoever needs it asks again
	})
	return nil
}

// tabSource says where an environment's tabs come from.
type tabSource int

const (
	tabsNone   tabSource = iota // no tabs are wanted or there are none: one blank tab
	tabsKept                    // the profile's session files
	tabsStale                   // the document; the session files where they say the same
	tabsUnread                  // the session files; nobody read which tabs there were
)

func tabsOf(doc state.Document, o Options) tabSource {
	switch {
	case !doc.Complete && doc.TabsByURL:
		return tabsNone // its session files are of an earlier Chrome
	case !doc.Complete:
		return tabsUnread
	case doc.TabsOnDisk && o.RestoreTabs:
		return tabsUnread
	case !o.RestoreTabs, len(doc.Tabs) == 0:
		return tabsNone
	case doc.Datadir == state.DatadirClean && !doc.TabsByURL:
		return tabsKept
	default:
		return tabsStale
	}
}
