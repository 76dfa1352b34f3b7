package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/pageevent"
)

// Happening is something that happened in a browser's pages.
type Happening = pageevent.Event

// The kinds of happenings.
const (
	HappenedNavigation = pageevent.Navigation
	HappenedDialog     = pageevent.Dialog
	HappenedDownload   = pageevent.Download
	HappenedConsole    = pageevent.Console
	HappenedCrash      = pageevent.Crash
	HappenedBlocked    = pageevent.Blocked
)

// Listen has notify called for what happens from now on, one after the other, until
// stop; of what pages log only the errors, unless all. notify must not wait for
// long. There is one listener at a time; a later one takes the place of an
// earlier. stop returns when what came before is reported. The pages that
// are there are reported first.
//
// Nothing is asked of a page for it, and no domain enabled that it could notice:
// dialogs, what pages log, and the status of a navigation are reported only while a
// client has enabled Page, Runtime or Log, and Network there.
func (b *Browser) Listen(notify func(Happening), all bool) (stop func()) {
	ctx, cancel := context.WithCancel(b.ctx)
	l := pageevent.New(notify, b.driver, b.now)
	forget := b.mux.OnHeard(l.Receive, all)
	done := make(chan struct{})
	b.listeners.Go(func() {
		defer close(done)
		defer forget()
		l.Run(ctx)
	})
	return func() {
		forget()
		cancel()
		<-done
	}
}
