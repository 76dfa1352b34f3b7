package browser

import (
	"context"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser/mux"
)

// The kinds of happenings.
const (
	HappenedNavigation = "navigated"
	HappenedDialog     = "dialog"
	HappenedDownload   = "download"
	HappenedConsole    = "console"
	HappenedCrash      = "page_crashed"
	HappenedBlocked    = "page_blocked" // it turned to what a session may not show
)

// Happening is something that happened in a browser's pages. Its data has
// strings, whole numbers and truth values.
type Happening struct {
	Kind string
	Data map[string]any
	// Lost is how many of this kind were not told before, because they came
	// quicker than they were taken in; such a happening has no data.
	Lost int
}

// settleHappening is how long a navigation waits for its title and its status,
// which come after it, and what came later with it; titleDeadline bounds the asking
// for the title, which a frozen Chrome does not answer.
const (
	settleHappening = 500 * time.Millisecond
	titleDeadline   = time.Second
)

// maxHeard bounds what waits to be told. What pages do comes by thousands when
// they want it to.
const maxHeard = 1024

// Listen has tell called for what happens from now on, one after the other, until
// stop; of what pages log only the errors, unless all. tell must not wait for
// long. There is one listener at a time; a later one takes the place of an
// earlier. stop returns when what was heard before is told. The pages that are
// there are told first.
//
// Nothing is asked of a page for it, and no domain enabled that it could notice:
// dialogs, what pages log, and the status of a navigation are heard only while a
// client has enabled Page, Runtime or Log, and Network there.
func (b *Browser) Listen(tell func(Happening), all bool) (stop func()) {
	ctx, cancel := context.WithCancel(b.ctx)
	e := &ear{tell: tell, driver: b.driver, now: b.now, wake: make(chan struct{}, 1), lost: map[string]int{}, pages: map[string]*pageHeard{}, downloads: map[string]string{}}
	deaf := b.mux.OnHeard(e.hear, all)
	done := make(chan struct{})
	b.hearing.Go(func() {
		defer close(done)
		defer deaf()
		e.run(ctx)
	})
	return func() {
		deaf()
		cancel()
		<-done
	}
}

// ear takes what the mux hears, makes happenings of it and tells them in order.
// What stands below the line is its goroutine's alone.
type ear struct {
	tell   func(Happening)
	driver *mux.Driver
	now    func() time.Time
	wake   chan struct{}

	mu    sync.Mutex
	heard []mux.Heard
	lost  map[string]int

	// ---
	pages     map[string]*pageHeard
	downloads map[string]string // names of those under way, by GUID
	ready     []*waiting
}

// waiting is a happening that is not told yet.
type waiting struct {
	Happening
	page  *pageHeard // of a navigation that others may still complete
	until time.Time
}

// hear takes an event off the mux; it does not wait.
func (e *ear) hear(h mux.Heard) {
	e.mu.Lock()
	if len(e.heard) < maxHeard {
		e.heard = append(e.heard, h)
	} else {
		e.lost[kindOf(h.Method)]++
	}
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *ear) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		e.take()
		if next := e.give(ctx, false); next > 0 {
			timer.Reset(next)
		}
		select {
		case <-e.wake:
		case <-timer.C:
		case <-ctx.Done():
			e.take()
			e.give(ctx, true)
			return
		}
	}
}

// take makes happenings of what was heard.
func (e *ear) take() {
	e.mu.Lock()
	heard, lost := e.heard, e.lost
	e.heard = nil
	if len(lost) > 0 {
		e.lost = map[string]int{}
	}
	e.mu.Unlock()
	for _, h := range heard {
		e.understand(h)
	}
	// The ends of some may be among what was lost. A page that goes on may be told of
	// once more, and the end of a download not at all.
	if len(e.pages) > maxHeard {
		clear(e.pages)
	}
	if len(e.downloads) > maxHeard {
		clear(e.downloads)
	}
	for kind, n := range lost {
		e.ready = append(e.ready, &waiting{Happening: Happening{Kind: kind, Lost: n}})
	}
}

// give tells what is complete, or has waited long enough, in order; it returns
// how long the next one still waits, 0 where there is none.
func (e *ear) give(ctx context.Context, all bool) time.Duration {
	now := e.now()
	for i, w := range e.ready {
		if left := w.until.Sub(now); w.page != nil && left > 0 && !all {
			e.ready = e.ready[i:]
			return left
		}
		if w.page != nil {
			w.page.pending = nil
			if !all {
				e.entitle(ctx, w)
			}
		}
		e.tell(w.Happening)
	}
	e.ready = nil
	return 0
}
