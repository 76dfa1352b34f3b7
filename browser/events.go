package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/pageevent"
)

// PageEvent is an event in a browser's pages.
type PageEvent = pageevent.Event

// Kinds of events.
const (
	EventNavigation = pageevent.Navigation
	EventDialog     = pageevent.Dialog
	EventDownload   = pageevent.Download
	EventConsole    = pageevent.Console
	EventCrash      = pageevent.Crash
	EventBlocked    = pageevent.Blocked
	EventEmpty      = pageevent.Empty
	EventRefused    = pageevent.Refused
	EventCommand    = pageevent.Command
	EventLimit      = pageevent.LimitReached
)

// Listen calls notify for each event in the pages, one at a time, until stop. Of a page's
// log entries it reports only the errors, unless all is set. The existing pages are
// reported first. notify must not block for long. There is one listener at a time; a
// later one replaces an earlier one. stop returns when all earlier events have been
// reported.
//
// Listen enables no CDP domain, so pages cannot notice it. Dialogs, log entries and the
// status of a navigation are reported only while a client has enabled Page, Runtime or
// Log, and Network for that page.
func (b *Browser) Listen(notify func(PageEvent), all bool) (stop func()) {
	ctx, cancel := context.WithCancel(b.ctx)
	l := pageevent.New(notify, b.driver, b.now)
	forget := b.mux.OnPageEvent(l.Receive, all)
	unwatch := b.starter.watchRefusals(b.dir, b.relay, l.Refuse)
	watched := make(chan struct{})
	b.listeners.Go(func() {
		defer close(watched)
		b.usage.watch(ctx, b.dir, b.process.Frozen, func(r Reached) { l.ReachLimit(r.Limit, r.Value) })
	})
	done := make(chan struct{})
	b.listeners.Go(func() {
		defer close(done)
		defer unwatch()
		defer forget()
		l.Run(ctx)
	})
	return func() {
		forget()
		unwatch()
		cancel()
		<-done
		<-watched
	}
}
