// Package pageevent converts what happens in a browser's pages to events: navigations,
// dialogs, downloads, log entries, crashes. It sends no command to a page and enables no
// domain that a page could notice.
package pageevent

import (
	"context"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"

	"github.com/stasisd/stasis/browser/mux"
)

// settleTime is how long the report of a navigation waits for its title and status, which
// arrive later. Later events wait with it. If there is no title then, it is asked for again
// every settleTime until titleTime after the navigation: a slow page has none yet. titleDeadline
// bounds each request for the title, which a frozen Chrome does not answer.
const (
	settleTime    = 500 * time.Millisecond
	titleTime     = 3 * time.Second
	titleDeadline = time.Second
)

// maxReceived bounds how many events wait to be reported. Pages can cause thousands.
const maxReceived = 1024

// Listener converts what the mux receives to events and reports them in order. Only the
// goroutine of Run uses the fields below the line.
type Listener struct {
	notify  func(Event)
	browser cdp.Session
	now     func() time.Time
	wake    chan struct{}

	mu       sync.Mutex
	received []received
	lost     map[string]int

	// ---
	pages     map[string]*pageState
	downloads map[string]*download // running downloads, by GUID
	ready     []*pending
}

// New returns a listener that calls notify for each event, one at a time. notify must not
// block for long. browser is a CDP session of the browser. Run reports the events.
func New(notify func(Event), browser cdp.Session, now func() time.Time) *Listener {
	return &Listener{notify: notify, browser: browser, now: now, wake: make(chan struct{}, 1), lost: map[string]int{},
		pages: map[string]*pageState{}, downloads: map[string]*download{}}
}

// pending is an event that has not been reported yet.
type pending struct {
	Event
	page  *pageState // of a navigation that later events may complete; else nil
	until time.Time
	last  time.Time // when its title is asked for the last time
}

// received is an event from the mux or, if kind is not "", an event of this package with its
// data.
type received struct {
	event mux.PageEvent
	kind  string
	data  map[string]any
}

func (r received) of() string {
	if r.kind != "" {
		return r.kind
	}
	return kindOf(r.event.Method)
}

// Receive accepts an event from the mux. It does not block.
func (l *Listener) Receive(h mux.PageEvent) { l.receive(received{event: h}) }

func (l *Listener) receive(r received) {
	l.mu.Lock()
	if len(l.received) < maxReceived {
		l.received = append(l.received, r)
	} else {
		l.lost[r.of()]++
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Run reports the events until ctx ends, and then those that were received before that.
func (l *Listener) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.take()
		if next := l.report(ctx, false); next > 0 {
			timer.Reset(next)
		}
		select {
		case <-l.wake:
		case <-timer.C:
		case <-ctx.Done():
			l.take()
			l.report(ctx, true)
			return
		}
	}
}

// take converts the received events.
func (l *Listener) take() {
	l.mu.Lock()
	all, lost := l.received, l.lost
	l.received = nil
	if len(lost) > 0 {
		l.lost = map[string]int{}
	}
	l.mu.Unlock()
	for _, r := range all {
		if r.kind != "" {
			l.add(r.kind, r.data)
		} else {
			l.handle(r.event)
		}
	}
	// The end of a page or download may be among the lost events. After the clear, a page
	// that is still open may be reported again, and the end of a download not at all.
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

// report reports the events that are complete or have waited long enough, in order. It
// returns how long the next one still waits, or 0 if there is none.
func (l *Listener) report(ctx context.Context, all bool) time.Duration {
	now := l.now()
	for i, w := range l.ready {
		if left := w.until.Sub(now); w.page != nil && left > 0 && !all {
			l.ready = l.ready[i:]
			return left
		}
		if w.page != nil {
			last := i == len(l.ready)-1 // a page without a title must not delay other events
			more := !all && !l.readTitle(ctx, w) && last
			if now := l.now(); more && now.Before(w.last) { // the answer may have taken long
				w.until = now.Add(settleTime)
				l.ready = l.ready[i:]
				return settleTime
			}
			w.page.pending = nil
		}
		l.notify(w.Event)
	}
	l.ready = nil
	return 0
}
