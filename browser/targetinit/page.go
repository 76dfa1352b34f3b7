package targetinit

import (
	"context"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// heldDeadline bounds the wait for a tab that is being restored. Two CDP sessions of one
// Chrome get its event within milliseconds, or within seconds on a busy machine.
const heldDeadline = 10 * time.Second

// appliedDeadline bounds how long a blank page may take to apply its setups. On a busy
// machine the page's renderer needs seconds.
const appliedDeadline = 20 * time.Second

// resumeDeadline bounds how long a client's page waits until the initialiser has attached to
// it, which takes far less. Some pages are never initialised. The setups of a page that it has
// attached to are waited for until appliedDeadline.
const resumeDeadline = 5 * time.Second

// initialisedChan returns the channel that is closed once a page has its setups. The
// caller holds mu.
func (i *Initialiser) initialisedChan(id target.ID) chan struct{} {
	if i.initialised[id] == nil {
		i.initialised[id] = make(chan struct{})
	}
	return i.initialised[id]
}

// markInitialised records that a page has its setups. The caller holds mu.
func (i *Initialiser) markInitialised(id target.ID) {
	initialised := i.initialisedChan(id)
	select {
	case <-initialised: // it was recorded before
	default:
		close(initialised)
	}
}

// resume calls let, which runs a client's page, once the page has its setups. It does not
// block.
func (i *Initialiser) resume(ctx context.Context, id target.ID, let func()) {
	i.mu.Lock()
	initialised := i.initialisedChan(id)
	i.mu.Unlock()
	i.work.Go(func() {
		resumed := func(after time.Duration) bool {
			timer := time.NewTimer(after)
			defer timer.Stop()
			select {
			case <-initialised:
				return true
			case <-timer.C:
			case <-ctx.Done():
			}
			return false
		}
		if !resumed(resumeDeadline) && (!i.attachedTo(id) || !resumed(appliedDeadline-resumeDeadline)) {
			i.mu.Lock()
			delete(i.initialised, id)
			i.mu.Unlock()
		}
		let()
	})
}

// attachedTo reports whether the initialiser has attached to a page.
func (i *Initialiser) attachedTo(id target.ID) bool {
	return slices.ContainsFunc(i.Targets(), func(t *Target) bool { return t.info.TargetID == id })
}

// WhenReady calls f once a page is ready, or with nil if the page closed before that. f
// must not block.
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

// HoldTabs begins or ends the restore of an environment. Until it ends, tabs wait for
// InitialiseHeld, because a setup that arrives before Chrome begins to load the tab is
// too late for its first document. ctx is the browser's.
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
			i.work.Go(func() { initialise(ctx) }) // a page that a tab opened during the restore
		default:
		}
	}
}

// heldTab returns the channel for the initialisation of a held tab. The caller holds mu.
func (i *Initialiser) heldTab(id target.ID) chan initialiseTab {
	if i.held[id] == nil {
		i.held[id] = make(chan initialiseTab, 1)
	}
	return i.held[id]
}

// InitialiseHeld initialises a tab that is being restored. It returns when Chrome has
// read the commands, or after heldDeadline.
func (i *Initialiser) InitialiseHeld(ctx context.Context, id target.ID) {
	if i == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, heldDeadline)
	defer cancel()
	i.mu.Lock()
	if i.held == nil {
		i.mu.Unlock()
		return // the restore has ended; new tabs are initialised automatically
	}
	held := i.heldTab(id)
	i.mu.Unlock()
	select {
	case initialise := <-held:
		initialise(ctx)
	case <-ctx.Done():
	}
}

// WaitApplied returns once a running page has applied its setups. A page answers commands
// in order, so the answer to one more command shows that the others are done. If a page
// navigates before that, it moves to another renderer without them (Chromium 156, seen
// with a stopped renderer). An error means that the page did not answer within
// appliedDeadline or has closed.
func (i *Initialiser) WaitApplied(ctx context.Context, id target.ID) error {
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

// Open navigates a new blank page to url once the page is ready, and then calls then.
// With an empty url it does not navigate. A page that is not ready within appliedDeadline
// is closed, because it must not show anything without the session's settings. Open does
// not block.
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
			_ = i.driver.Post(ctx, "", target.CloseTarget.Method, target.CloseTargetParams{TargetID: id}) // it fails only with Chrome, and then no page exists
			then(false)
		}
	})
}
