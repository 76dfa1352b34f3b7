package browser

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
)

// inviteDeadline bounds the wait for a tab that is being restored. Two sessions of
// one Chrome learn of it within milliseconds, and within seconds on a busy machine.
const inviteDeadline = 10 * time.Second

// takenDeadline bounds how long a blank page may take to apply what it was given.
// A busy machine needs seconds for the page's renderer.
const takenDeadline = 20 * time.Second

// resumeDeadline bounds how long a client's page waits for what it is to have:
// far more than that takes, and there may be pages that are given nothing.
const resumeDeadline = 5 * time.Second

// gift is closed once a page has been given everything; the caller holds the
// lock.
func (a *attendance) gift(id target.ID) chan struct{} {
	if a.given[id] == nil {
		a.given[id] = make(chan struct{})
	}
	return a.given[id]
}

// give says that a page has been given everything; the caller holds the lock.
func (a *attendance) give(id target.ID) {
	gift := a.gift(id)
	select {
	case <-gift: // it was said before
	default:
		close(gift)
	}
}

// resume lets a page run, for a client, once it has been given everything. It
// does not wait.
func (a *attendance) resume(ctx context.Context, id target.ID, let func()) {
	a.mu.Lock()
	gift := a.gift(id)
	a.mu.Unlock()
	a.work.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, resumeDeadline)
		defer cancel()
		select {
		case <-gift:
		case <-ctx.Done():
			a.mu.Lock()
			delete(a.given, id)
			a.mu.Unlock()
		}
		let()
	})
}

// after runs f once a page is set up, or with nil when it has gone before; f
// must not wait.
func (a *attendance) after(id target.ID, f func(*attended)) {
	a.mu.Lock()
	for _, t := range a.targets {
		if t.info.TargetID == id && t.ready {
			a.mu.Unlock()
			f(t)
			return
		}
	}
	a.awaited[id] = append(a.awaited[id], f)
	a.mu.Unlock()
}

// restoring says whether an environment is being brought in. Its tabs are set
// up when they are invited: what a tab is given before Chrome has begun to load
// it comes too late for its first document. ctx is the browser's.
func (a *attendance) restoring(ctx context.Context, on bool) {
	if a == nil {
		return
	}
	a.mu.Lock()
	rest := a.kept
	a.kept = nil
	if on {
		a.kept = map[target.ID]chan welcome{}
	}
	a.mu.Unlock()
	for _, kept := range rest {
		select {
		case welcome := <-kept:
			a.work.Go(func() { welcome(ctx) }) // a page that a tab has opened meanwhile
		default:
		}
	}
}

// place is where the welcome of a tab that is being brought in is kept; the
// caller holds the lock.
func (a *attendance) place(id target.ID) chan welcome {
	if a.kept[id] == nil {
		a.kept[id] = make(chan welcome, 1)
	}
	return a.kept[id]
}

// invite sets a tab up that is being brought in and returns when Chrome has
// read that, or at its deadline.
func (a *attendance) invite(ctx context.Context, id target.ID) {
	if a == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, inviteDeadline)
	defer cancel()
	a.mu.Lock()
	if a.kept == nil {
		a.mu.Unlock()
		return // a tab that has come since is set up by itself
	}
	place := a.place(id)
	a.mu.Unlock()
	select {
	case welcome := <-place:
		welcome(ctx)
	case <-ctx.Done():
	}
}

// taken returns once a page that runs has applied what it was given. Chrome's page
// answers commands in order, so its answer to one more says that the others are
// done. A page that navigates before that goes to another renderer without them
// (Chromium 156, seen with a renderer that was stopped). An error says that the
// page did not answer within takenDeadline, or has gone.
func (a *attendance) taken(ctx context.Context, id target.ID) error {
	if a == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, takenDeadline)
	defer cancel()
	for _, t := range a.all() {
		if t.info.TargetID == id {
			_, err := cdp.Call(ctx, t, runtime.RunIfWaitingForDebugger, cdp.Empty{})
			return err
		}
	}
	return nil
}

// open sends a new blank page to an address once it is set up, and then says
// so; to none where url is empty. One that is not set up within takenDeadline is
// closed: without what the session sets it must not show anything. It does not
// wait.
func (a *attendance) open(ctx context.Context, id target.ID, url string, then func(ready bool)) {
	ready := make(chan *attended, 1)
	a.after(id, func(t *attended) { ready <- t })
	a.work.Go(func() {
		waiting, cancel := context.WithTimeout(ctx, takenDeadline)
		defer cancel()
		select {
		case t := <-ready:
			if t != nil && url != "" {
				t.post(ctx, page.Navigate.Method, page.NavigateParams{URL: url})
			}
			then(true)
		case <-waiting.Done():
			a.mu.Lock()
			delete(a.awaited, id)
			a.mu.Unlock()
			_ = a.driver.Post(ctx, "", target.CloseTarget.Method, target.CloseTargetParams{TargetID: id}) // of a dead Chrome none is left
			then(false)
		}
	})
}
