package browser

import (
	"context"
	"time"

	"github.com/stasisd/stasis/browser/capture"
	"github.com/stasisd/stasis/browser/datadir"
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

// bringIn brings the profile in that lies in the user data directory, lays
// the state down where the datadir lacks it, and lets the tabs go. Until then
// every tab and service worker of the profile is held before its first
// request (Target.setAutoAttach with waitForDebuggerOnStart). The extensions
// that the profile does not know are loaded by then.
func (b *Browser) bringIn(ctx context.Context, doc state.Document, o Options, unknown []string) ([]state.Component, error) {
	const op = "browser.restore"
	ctx, cancel := context.WithTimeout(ctx, restoreDeadline)
	defer cancel()
	spares, err := capture.Pages(ctx, b.driver)
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, op, "Chrome did not answer")
	}
	b.attendance.restoring(true)
	defer b.attendance.restoring(false)
	held, err := b.hold(ctx)
	if err != nil {
		return nil, fault.Wrap(err, fault.BrowserFailed, op, "Chrome's tabs could not be held")
	}
	tabs, command := tabsOf(doc, o), []string{"--profile-directory=" + datadir.Profile}
	if tabs != tabsKept {
		command = append(command, blankURL)
	}
	if err := b.process.Ask(ctx, command...); err != nil {
		held.release(ctx)
		return nil, fault.Wrap(err, fault.BrowserFailed, op, "Chrome did not take the profile")
	}
	if tabs == tabsKept {
		err = held.await(ctx, len(doc.Tabs))
	} else {
		err = held.awaitAll(ctx, len(spares))
	}
	if err != nil {
		held.release(ctx)
		return nil, fault.Wrap(err, fault.BrowserFailed, op, "the profile did not come up")
	}
	for _, p := range spares {
		b.mux.Hide(p.TargetID)
	}
	downloads := make(chan error, 1)
	go func() { downloads <- b.keepDownloads(ctx) }() // of this profile: a new one has Chrome's own folder
	b.mux.Regrant(doc.Permissions)
	report := b.regrant(ctx, doc.Permissions)
	brought, err := b.bringExtensions(ctx, held, doc, unknown)
	if err != nil {
		held.release(ctx)
		return nil, err
	}
	report = append(report, brought...)
	laid, err := b.overlay(ctx, doc)
	if err != nil {
		held.release(ctx)
		return nil, err
	}
	report = append(report, laid...)
	var lines []state.Component
	switch tabs {
	case tabsKept:
		lines = held.resume(ctx, doc, b.salvage.session)
	case tabsUnread:
		lines, err = held.rescue(ctx)
	case tabsStale:
		lines, err = held.renew(ctx, doc)
	case tabsNone:
		lines = held.leaveBlank(doc)
	}
	if err != nil {
		held.release(ctx)
		return nil, fault.Wrap(err, fault.BrowserFailed, op, "the tabs could not be let go")
	}
	report = append(report, lines...)
	if err := <-downloads; err != nil {
		held.release(ctx)
		return nil, err
	}
	b.background.Go(func() { held.settle(b.ctx) })
	b.leftover.tabs = spares
	b.background.Go(func() {
		b.mux.Lull(b.ctx)
		_ = b.alone(b.ctx) // else whoever needs it asks again
	})
	return report, nil
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
	case !o.RestoreTabs, len(doc.Tabs) == 0:
		return tabsNone
	case doc.Datadir == state.DatadirClean && !doc.TabsByURL:
		return tabsKept
	default:
		return tabsStale
	}
}
