// Package targetinit initialises targets: it applies the session's settings to each
// target of a Chrome before the target's first request and script.
//
// [Initialiser] attaches to the targets with its own connection. So its auto-attach and
// its pauses are independent of those of a restore and of clients: a target runs only
// when each of them has resumed it. The [Setup]s decide what is applied to a target.
package targetinit

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/fault"
)

// Driver is the initialiser's own CDP connection to one Chrome.
type Driver interface {
	cdp.Session // of the browser
	// Session returns the session of a target that the connection is attached to.
	Session(id target.SessionID) cdp.Session
	// Post sends a command to a session and does not wait for the answer.
	Post(ctx context.Context, session target.SessionID, method string, params any) error
	// Events returns events of all sessions, in order, until cancel.
	Events(methods ...string) (events <-chan mux.Event, cancel func())
	// WhenResumed calls then once no client keeps a page paused at its start.
	WhenResumed(id target.ID, then func())
	// EndOnOverflow makes Chrome end if an event would be lost.
	EndOnOverflow()
}

// Clients reports what CDP clients do with pages.
type Clients interface {
	OnCreate(mux.CreateHook)
	OnResume(mux.ResumeHook)
}

// Initialiser is attached to a browser's targets for the browser's whole life. A nil
// Initialiser is for a browser without setups.
type Initialiser struct {
	driver Driver
	setups []Setup
	work   sync.WaitGroup // the loop, and each initialisation

	mu          sync.Mutex
	targets     map[target.SessionID]*Target
	awaited     map[target.ID][]func(*Target)    // called once the target is ready
	initialised map[target.ID]chan struct{}      // closed when the target has its setups, or has closed
	held        map[target.ID]chan initialiseTab // nil unless an environment is being restored
}

// initialiseTab initialises a tab that a restore has paused.
type initialiseTab func(ctx context.Context)

// New returns an Initialiser with its own connection, which ends with the browser.
func New(driver Driver, setups ...Setup) *Initialiser {
	return &Initialiser{driver: driver, setups: setups, targets: map[target.SessionID]*Target{},
		awaited: map[target.ID][]func(*Target){}, initialised: map[target.ID]chan struct{}{}}
}

// Start begins to initialise every target. Existing targets are ready when it returns,
// and later ones before their first request. ctx bounds the start. The initialiser ends
// with life, which is the browser's context.
func (i *Initialiser) Start(ctx, life context.Context, clients Clients) error {
	const op = "targetinit.start"
	i.driver.EndOnOverflow() // a target whose event is lost would stay paused
	clients.OnCreate(func(id target.ID, url string, answered func(bool)) { i.Open(life, id, url, answered) })
	clients.OnResume(func(id target.ID, let func()) { i.resume(life, id, let) })
	events, stop := i.driver.Events(target.AttachedToTarget.Method, target.DetachedFromTarget.Method)
	begun := make(chan struct{})
	i.work.Go(func() {
		defer stop()
		i.loop(life, events, begun)
	})
	if _, err := cdp.Call(ctx, i.driver, target.SetAutoAttach, i.autoAttach("page", "shared_worker", "service_worker")); err != nil {
		return fault.Wrap(err, fault.BrowserFailed, op, "attaching to Chrome's tabs failed")
	}
	// Chrome sends a session's events before its answers, and its first page exists.
	select {
	case <-begun:
		return nil
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.BrowserFailed, op, "Chrome's first tab could not be set up")
	}
}

// Wait returns when the initialiser has ended, which is after the browser and its pipe.
func (i *Initialiser) Wait() {
	if i != nil {
		i.work.Wait()
	}
}

// autoAttach returns the parameters that attach to those of the target types that some
// setup wants.
func (i *Initialiser) autoAttach(kinds ...string) target.SetAutoAttachParams {
	yes := true
	p := target.SetAutoAttachParams{AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &yes}
	for _, kind := range kinds {
		for _, s := range i.setups {
			if s.Wants(kind) {
				p.Filter = append(p.Filter, target.FilterEntry{Type: kind})
				break
			}
		}
	}
	return p
}

// loop processes targets that open and close. It closes begun when the first one is
// ready.
func (i *Initialiser) loop(ctx context.Context, events <-chan mux.Event, begun chan struct{}) {
	first := sync.OnceFunc(func() { close(begun) })
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			switch e.Method {
			case target.AttachedToTarget.Method:
				var at target.EventAttachedToTarget
				if json.Unmarshal(e.Params, &at) == nil && at.TargetInfo != nil {
					i.attached(ctx, at, first)
				}
			case target.DetachedFromTarget.Method:
				var gone target.EventDetachedFromTarget
				if json.Unmarshal(e.Params, &gone) == nil {
					i.detached(ctx, gone.SessionID)
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// attached starts to initialise a target. A tab that a restore has paused waits for
// InitialiseHeld.
func (i *Initialiser) attached(ctx context.Context, at target.EventAttachedToTarget, ready func()) {
	t := NewTarget(i.driver, at.SessionID, at.TargetInfo)
	i.mu.Lock()
	i.targets[t.id] = t
	hold := i.held != nil && at.WaitingForDebugger && t.info.Type == "page"
	if hold {
		select {
		case i.heldTab(t.info.TargetID) <- func(ctx context.Context) { i.initialise(ctx, t, true) }:
		default: // it was attached before, and that initialisation is still waiting
			hold = false
		}
	}
	i.mu.Unlock()
	if !hold {
		i.work.Go(func() {
			i.initialise(ctx, t, false)
			ready()
		})
	}
}

// initialise applies the setups to a target and lets it run. It returns when the target
// has applied them, or, for a tab that a restore has paused, when Chrome has read the
// commands.
func (i *Initialiser) initialise(ctx context.Context, t *Target, held bool) {
	if inner := i.autoAttach("iframe", "worker"); len(inner.Filter) > 0 && t.info.Type != "service_worker" {
		t.Post(ctx, target.SetAutoAttach.Method, inner)
	}
	for _, s := range i.setups {
		if s.Wants(t.info.Type) {
			s.Initialise(ctx, t)
		}
	}
	if t.info.Type == "page" {
		// The browser process answers this, after it has read the posted commands.
		_, _ = cdp.Call(ctx, t, target.GetTargetInfo, target.GetTargetInfoParams{})
		i.mu.Lock()
		i.markInitialised(t.info.TargetID)
		i.mu.Unlock()
	}
	if held {
		t.Post(ctx, runtime.RunIfWaitingForDebugger.Method, nil)
		// The browser process answers this, even while the tab is still paused for another
		// reason.
		_, _ = cdp.Call(ctx, t, target.GetTargetInfo, target.GetTargetInfoParams{})
	} else {
		if t.info.CanAccessOpener {
			i.awaitClients(ctx, t.info.TargetID)
		}
		// A page that navigates before it has answered would lose some setups.
		_, _ = cdp.Call(ctx, t, runtime.RunIfWaitingForDebugger, cdp.Empty{})
	}
	i.mu.Lock()
	t.ready = true
	then := i.awaited[t.info.TargetID]
	delete(i.awaited, t.info.TargetID)
	i.mu.Unlock()
	for _, f := range then {
		f(t)
	}
}

// awaitClients returns when clients have prepared a page that another page opened and has
// access to. Chrome 156 lets such a page run at the first command to do so, even if another
// session of it still waits. Then its first request would miss a client's interception and
// scripts. Any other page runs only after a command of each session.
func (i *Initialiser) awaitClients(ctx context.Context, id target.ID) {
	resumed := make(chan struct{})
	i.driver.WhenResumed(id, func() { close(resumed) })
	select {
	case <-resumed:
	case <-ctx.Done():
	}
}

func (i *Initialiser) detached(ctx context.Context, id target.SessionID) {
	i.mu.Lock()
	closed := i.targets[id]
	delete(i.targets, id)
	if closed == nil {
		i.mu.Unlock()
		return
	}
	then := i.awaited[closed.info.TargetID]
	delete(i.awaited, closed.info.TargetID)
	i.markInitialised(closed.info.TargetID)
	delete(i.initialised, closed.info.TargetID)
	i.mu.Unlock()
	for _, f := range then {
		f(nil)
	}
	remaining := i.Targets()
	for _, s := range i.setups {
		s.TargetClosed(ctx, closed, remaining)
	}
}
