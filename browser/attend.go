package browser

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

// setup is something that the targets of a session are given before their
// first request and script.
type setup interface {
	// wants says whether targets of a type (CDP TargetInfo.type: page, iframe,
	// worker, shared_worker, service_worker) are given something.
	wants(kind string) bool
	// arrive gives a new target what it is to have. The target waits until
	// every setup has returned; most domains answer it only then, so what goes
	// through the page is posted, not called. Targets arrive side by side.
	arrive(ctx context.Context, t *attended)
	// renew gives it again what clients may have set otherwise, and what went
	// with them: the last one has left.
	renew(ctx context.Context, t *attended)
	// depart is told of a target that has gone, with those that are left.
	depart(ctx context.Context, gone *attended, left []*attended)
}

// attended is one target that the attendance is attached to.
type attended struct {
	cdp.Session // its own session, for calls and subscriptions
	driver      *mux.Driver
	id          target.SessionID
	info        *target.Info
	ready       bool // it has been set up; guarded by the attendance
}

// post sends a command without awaiting the answer.
func (t *attended) post(ctx context.Context, method string, params any) {
	// A lost pipe ends the attendance; a target that has gone needs nothing.
	_ = t.driver.Post(ctx, t.id, method, params)
}

// attendance is attached to the targets of a browser for its whole life, where
// the session has something to set on each. It has a driver of its own, so its
// auto-attach and its waiting are apart from those of a restore's hold and of
// clients: a target runs when each of them has let it go.
type attendance struct {
	driver *mux.Driver
	setups []setup
	work   sync.WaitGroup // the loop, and a target's arrival while it lasts

	mu      sync.Mutex
	targets map[target.SessionID]*attended
	awaited map[target.ID][]func(*attended) // run once the target is set up
	given   map[target.ID]chan struct{}     // closed when the target has been given everything, or has gone
	kept    map[target.ID]chan welcome      // nil unless an environment is being brought in
}

// attend begins to set up every target: those that are there are ready when it
// returns, those that come later before their first request. Without a setup
// nothing is attached, and a page has nothing to notice. It ends with the
// browser.
func (b *Browser) attend(ctx context.Context, setups ...setup) error {
	const op = "browser.attend"
	if len(setups) == 0 {
		return nil
	}
	driver, err := b.mux.Driver(ctx)
	if err != nil {
		return fault.Wrap(err, fault.BrowserFailed, op, "Chrome did not answer")
	}
	driver.MissNothing() // a target that it does not hear of would wait for ever
	a := &attendance{driver: driver, setups: setups, targets: map[target.SessionID]*attended{},
		awaited: map[target.ID][]func(*attended){}, given: map[target.ID]chan struct{}{}}
	b.attendance = a
	b.mux.OnCreate(func(id target.ID, url string, answered func(bool)) { a.open(b.ctx, id, url, answered) })
	b.mux.OnResume(func(id target.ID, let func()) { a.resume(b.ctx, id, let) })
	events, stop := driver.Events(target.AttachedToTarget.Method, target.DetachedFromTarget.Method)
	begun := make(chan struct{})
	a.work.Go(func() {
		defer stop()
		a.loop(b.ctx, events, begun)
	})
	if _, err := cdp.Call(ctx, driver, target.SetAutoAttach, a.following("page", "shared_worker", "service_worker")); err != nil {
		return fault.Wrap(err, fault.BrowserFailed, op, "Chrome's tabs could not be attended")
	}
	// A browser's events come before its answers, and its first page is there.
	select {
	case <-begun:
		return nil
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.BrowserFailed, op, "Chrome's first tab could not be set up")
	}
}

// following is the command that attaches to targets of these types as far as a
// setup wants them.
func (a *attendance) following(kinds ...string) target.SetAutoAttachParams {
	yes := true
	p := target.SetAutoAttachParams{AutoAttach: true, WaitForDebuggerOnStart: true, Flatten: &yes}
	for _, kind := range kinds {
		for _, s := range a.setups {
			if s.wants(kind) {
				p.Filter = append(p.Filter, target.FilterEntry{Type: kind})
				break
			}
		}
	}
	return p
}

// welcome sets a target up that was kept for it.
type welcome func(ctx context.Context)

// loop takes targets as they come and go; begun is closed when the first one
// is set up.
func (a *attendance) loop(ctx context.Context, events <-chan mux.Event, begun chan struct{}) {
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
					t := &attended{Session: a.driver.Session(at.SessionID), driver: a.driver, id: at.SessionID, info: at.TargetInfo}
					a.mu.Lock()
					a.targets[t.id] = t
					keep := a.kept != nil && at.WaitingForDebugger && t.info.Type == "page"
					if keep {
						select {
						case a.place(t.info.TargetID) <- func(ctx context.Context) { a.welcome(ctx, t, true) }:
						default: // it was attached to before, and nobody has taken that
							keep = false
						}
					}
					a.mu.Unlock()
					if !keep {
						a.work.Go(func() {
							a.welcome(ctx, t, false)
							first()
						})
					}
				}
			case target.DetachedFromTarget.Method:
				var gone target.EventDetachedFromTarget
				if json.Unmarshal(e.Params, &gone) == nil {
					a.farewell(ctx, gone.SessionID)
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// welcome sets a target up and lets it go. It returns when the target has
// taken what it was given; one that is held by a restore too, when Chrome has.
func (a *attendance) welcome(ctx context.Context, t *attended, held bool) {
	if inner := a.following("iframe", "worker"); len(inner.Filter) > 0 && t.info.Type != "service_worker" {
		t.post(ctx, target.SetAutoAttach.Method, inner)
	}
	for _, s := range a.setups {
		if s.wants(t.info.Type) {
			s.arrive(ctx, t)
		}
	}
	if t.info.Type == "page" {
		// What was posted is with Chrome when it answers this, which it does by itself.
		_, _ = cdp.Call(ctx, t, target.GetTargetInfo, target.GetTargetInfoParams{})
		a.mu.Lock()
		a.give(t.info.TargetID)
		a.mu.Unlock()
	}
	if held {
		t.post(ctx, runtime.RunIfWaitingForDebugger.Method, nil)
		// The browser answers this by itself, whatever else the tab waits for.
		_, _ = cdp.Call(ctx, t, target.GetTargetInfo, target.GetTargetInfoParams{})
	} else {
		// A page that navigates before it has answered would lose some of it.
		_, _ = cdp.Call(ctx, t, runtime.RunIfWaitingForDebugger, cdp.Empty{})
	}
	a.mu.Lock()
	t.ready = true
	then := a.awaited[t.info.TargetID]
	delete(a.awaited, t.info.TargetID)
	a.mu.Unlock()
	for _, f := range then {
		f(t)
	}
}

func (a *attendance) farewell(ctx context.Context, id target.SessionID) {
	a.mu.Lock()
	gone := a.targets[id]
	delete(a.targets, id)
	if gone == nil {
		a.mu.Unlock()
		return
	}
	then := a.awaited[gone.info.TargetID]
	delete(a.awaited, gone.info.TargetID)
	a.give(gone.info.TargetID)
	delete(a.given, gone.info.TargetID)
	a.mu.Unlock()
	for _, f := range then {
		f(nil)
	}
	left := a.all()
	for _, s := range a.setups {
		s.depart(ctx, gone, left)
	}
}
