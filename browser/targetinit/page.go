package targetinit

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// heldDeadline bounds the wait for a tab that is being restored. Two sessions of
// one Chrome learn of it within milliseconds, and within seconds on a busy machine.
const heldDeadline = 10 * time.Second

// appliedDeadline bounds how long a blank page may take to apply what it was given.
// A busy machine needs seconds for the page's renderer.
const appliedDeadline = 20 * time.Second

// resumeDeadline bounds how long a client's page waits for what it is to have: far
// more than that takes. There may be pages that are given nothing.
const resumeDeadline = 5 * time.Second

// givenTo is closed once a page has been given everything; the caller holds mu.
func (i *Initialiser) givenTo(id target.ID) chan struct{} {
	if i.given[id] == nil {
		i.given[id] = make(chan struct{})
	}
	return i.given[id]
}

// closeGiven notes that a page has been given everything; the caller holds mu.
func (i *Initialiser) closeGiven(id target.ID) {
	given := i.givenTo(id)
	select {
	case <-given: // it was noted before
	default:
		close(given)
	}
}

// resume lets a page run, for a client, once it has been given everything. It does
// not wait.
func (i *Initialiser) resume(ctx context.Context, id target.ID, let func()) {
	i.mu.Lock()
	given := i.givenTo(id)
	i.mu.Unlock()
	i.work.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, resumeDeadline)
		defer cancel()
		select {
		case <-given:
		case <-ctx.Done():
			i.mu.Lock()
			delete(i.given, id)
			i.mu.Unlock()
		}
		let()
	})
}

// WhenReady runs f once a page is ready, or with nil when it has gone before. f
// must not wait.
func (i *Initialiser) WhenReady(id target.ID, f func(*Target)) {
	i.mu.Lock()
	for _, t := range i.targets {
		if t.info.TargetID == id && t.ready {
			i.mu.Unlock()
			f(t)
			return
		}
	}
	i.awaited[id] = append(i.awaited[id], f)
	i.mu.Unlock()
}

// HoldTabs begins or ends the time in which an environment is restored. Until it
// ends, its tabs wait for InitialiseHeld: what a tab is given before Chrome has
// begun to load it comes too late for its first document. ctx is the browser's.
func (i *Initialiser) HoldTabs(ctx context.Context, on bool) {
	if i == nil {
		return
	}
	i.mu.Lock()
	rest := i.held
	i.held = nil
	if on {
		i.held = map[target.ID]chan initialiseTab{}
	}
	i.mu.Unlock()
	for _, held := range rest {
		select {
		case initialise := <-held:
			i.work.Go(func() { initialise(ctx) }) // a page that a tab has opened meanwhile
		default:
		}
	}
}

// heldTab is where the initialisation of a held tab is kept; the caller holds mu.
func (i *Initialiser) heldTab(id target.ID) chan initialiseTab {
	if i.held[id] == nil {
		i.held[id] = make(chan initialiseTab, 1)
	}
	return i.held[id]
}

// InitialiseHeld initialises a tab that is being restored. It returns when Chrome
// has read that, or at its deadline.
func (i *Initialiser) InitialiseHeld(ctx context.Context, id target.ID) {
	if i == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, heldDeadline)
	defer cancel()
	i.mu.Lock()
	if i.held == nil {
		i.mu.Unlock()
		return // a tab that has come since is initialised by itself
	}
	held := i.heldTab(id)
	i.mu.Unlock()
	select {
	case initialise := <-held:
		initialise(ctx)
	case <-ctx.Done():
	}
}

// Applied returns once a page that runs has applied what it was given. Chrome's page
// answers commands in order, so its answer to one more says that the others are
// done. A page that navigates before that goes to another renderer without them
// (Chromium 156, seen with a renderer that was stopped). An error says that the
// page did not answer within appliedDeadline, or has gone.
func (i *Initialiser) Applied(ctx context.Context, id target.ID) error {
	if i == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, appliedDeadline)
	defer cancel()
	for _, t := range i.Targets() {
		if t.info.TargetID == id {
			_, err := cdp.Call(ctx, t, runtime.RunIfWaitingForDebugger, cdp.Empty{})
			return err
		}
	}
	return nil
}

// Open sends a new blank page to an address once it is ready, and then calls then;
// to none where url is empty. A page that is not ready within appliedDeadline is
// closed: without what the session sets it must not show anything. Open does not
// wait.
func (i *Initialiser) Open(ctx context.Context, id target.ID, url string, then func(ready bool)) {
	ready := make(chan *Target, 1)
	i.WhenReady(id, func(t *Target) { ready <- t })
	i.work.Go(func() {
		waiting, cancel := context.WithTimeout(ctx, appliedDeadline)
		defer cancel()
		select {
		case t := <-ready:
			if t != nil && url != "" {
				t.Post(ctx, page.Navigate.Method, page.NavigateParams{URL: url})
			}
			then(true)
		case <-waiting.Done():
			i.mu.Lock()
			delete(i.awaited, id)
			i.mu.Unlock()
			_ = i.driver.Post(ctx, "", target.CloseTarget.Method, target.CloseTargetParams{TargetID: id}) // a dead Chrome has none left
			then(false)
		}
	})
}
