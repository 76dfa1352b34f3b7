package mux

import (
	"context"
	"sync"

	"github.com/chromedp/cdproto/target"
)

// Hooks holds the daemon's callbacks, which take part in clients' commands and in
// navigations of pages. Each is nil until it is set. A later one replaces an earlier one.
// Its methods are safe for concurrent use.
type Hooks struct {
	mu       sync.Mutex
	opened   CreateHook
	resumed  ResumeHook
	detached func()
	foreign  func(target.ID)
	dropping DropHook
	regrants func(context.Context)
}

// CreateHook sets up a page that a client created with Target.createTarget. If url is not
// empty, it navigates the page to it. It calls answered once: with true when the
// client may have the page, with false when the page was not set up and is closed. With
// false the client's command fails. CreateHook must not wait.
type CreateHook func(id target.ID, url string, answered func(ready bool))

// OnCreate makes every new page of a client start blank and passes it to f. Chrome does
// not pause a page that is created with an address, so its first request would go out
// before the page is set up.
func (h *Hooks) OnCreate(f CreateHook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened = f
}

func (h *Hooks) create() CreateHook {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opened
}

// ResumeHook is called when a client lets a page run (Runtime.runIfWaitingForDebugger). It
// calls let once the page may run, and must not wait.
type ResumeHook func(id target.ID, let func())

// OnResume makes f decide when a page may run after a client resumed it. A page that
// another page opened waits once for all clients. Chrome resumes it at the first command,
// even if another client is still setting it up.
func (h *Hooks) OnResume(f ResumeHook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resumed = f
}

func (h *Hooks) resume() ResumeHook {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.resumed
}

// OnDetach sets f, which is called after each command that may have ended sessions of a
// target or its WebAuthn domain, once Chrome has run it. The sender can be any peer. f
// must not wait.
func (h *Hooks) OnDetach(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.detached = f
}

// commandDone calls OnDetach's function if the command may have ended sessions.
func (h *Hooks) commandDone(method string) {
	switch method {
	case "Target.detachFromTarget", "Target.setAutoAttach", "WebAuthn.disable":
	default:
		return
	}
	h.mu.Lock()
	f := h.detached
	h.mu.Unlock()
	if f != nil {
		f()
	}
}

// OnForeign sets f, which is called for each page that navigates to an address that it
// may not show. It is called once until [Mux.RevealIfAllowed]. The clients' sessions of the page
// have ended before the call. Clients do not see the page until then: Chrome reports
// the next address while the document of the last one still exists. f must not wait.
func (h *Hooks) OnForeign(f func(id target.ID)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.foreign = f
}

func (h *Hooks) foreignHook() func(target.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.foreign
}

// DropHook prepares a page for files that are dragged over it or dropped on it.
// Afterwards Chrome does not open files that the page does not accept.
type DropHook func(ctx context.Context, page target.ID) error

// OnDrop sets f, which is called before each drag event with files that a client sends.
func (h *Hooks) OnDrop(f DropHook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropping = f
}

func (h *Hooks) drop() DropHook {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dropping
}

// OnRegrant sets f, which is called when the permissions of shared contexts have ended. f
// resets Chrome's permissions and sets those that are in force; see [Permissions.InForce].
func (h *Hooks) OnRegrant(f func(context.Context)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.regrants = f
}

// regrant calls OnRegrant's function.
func (h *Hooks) regrant(ctx context.Context) {
	h.mu.Lock()
	f := h.regrants
	h.mu.Unlock()
	if f != nil {
		f(ctx)
	}
}
