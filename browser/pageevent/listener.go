// Package pageevent makes events of what happens in a browser's pages: navigations,
// dialogs, downloads, what pages log, crashes. It asks nothing of a page and enables no
// domain that a page could notice.
package pageevent

import (
	"context"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"

	"github.com/stasisd/stasis/browser/mux"
)

// settleTime is how long a navigation waits for its title and its status,
// which come after it, and what came later with it; titleDeadline bounds the asking
// for the title, which a frozen Chrome does not answer.
const (
	settleTime    = 500 * time.Millisecond
	titleDeadline = time.Second
)

// maxReceived bounds what waits to be reported. What pages do comes by thousands when
// they want it to.
const maxReceived = 1024

// Listener makes events of what the multiplexer receives, and reports them in order.
// What stands below the line belongs to the goroutine of Run alone.
type Listener struct {
	notify  func(Event)
	browser cdp.Session
	now     func() time.Time
	wake    chan struct{}

	mu       sync.Mutex
	received []mux.Heard
	lost     map[string]int

	// ---
	pages     map[string]*pageSeen
	downloads map[string]string // names of those under way, by GUID
	ready     []*pending
}

// New makes a listener that calls notify for each event, one after the other; notify
// must not wait for long. browser is a session of the browser. Run reports the events.
func New(notify func(Event), browser cdp.Session, now func() time.Time) *Listener {
	return &Listener{notify: notify, browser: browser, now: now, wake: make(chan struct{}, 1), lost: map[string]int{},
		pages: map[string]*pageSeen{}, downloads: map[string]string{}}
}

// pending is an event that is not reported yet.
type pending struct {
	Event
	page  *pageSeen // of a navigation that others may still complete
	until time.Time
}

// Receive takes an event off the multiplexer; it does not wait.
func (l *Listener) Receive(h mux.Heard) {
	l.mu.Lock()
	if len(l.received) < maxReceived {
		l.received = append(l.received, h)
	} else {
		l.lost[kindOf(h.Method)]++
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run reports the events until ctx ends, and then those that were received before.
func (l *Listener) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.take()
		if next := l.give(ctx, false); next > 0 {
			timer.Reset(next)
		}
		select {
		case <-l.wake:
		case <-timer.C:
		case <-ctx.Done():
			l.take()
			l.give(ctx, true)
			return
		}
	}
}

// take makes events of what was received.
func (l *Listener) take() {
	l.mu.Lock()
	received, lost := l.received, l.lost
	l.received = nil
	if len(lost) > 0 {
		l.lost = map[string]int{}
	}
	l.mu.Unlock()
	for _, h := range received {
		l.handle(h)
	}
	// The ends of some may be among what was lost. A page that goes on may be reported
	// once more, and the end of a download not at all.
	if len(l.pages) > maxReceived {
		clear(l.pages)
	}
	if len(l.downloads) > maxReceived {
		clear(l.downloads)
	}
	for kind, n := range lost {
		l.ready = append(l.ready, &pending{Event: Event{Kind: kind, Lost: n}})
	}
}

// give reports what is complete, or has waited long enough, in order; it returns
// how long the next one still waits, 0 where there is none.
func (l *Listener) give(ctx context.Context, all bool) time.Duration {
	now := l.now()
	for i, w := range l.ready {
		if left := w.until.Sub(now); w.page != nil && left > 0 && !all {
			l.ready = l.ready[i:]
			return left
		}
		if w.page != nil {
			w.page.pending = nil
			if !all {
				l.entitle(ctx, w)
			}
		}
		l.notify(w.Event)
	}
	l.ready = nil
	return 0
}
