package mux

import (
	"context"
	"sync"

	"github.com/chromedp/cdproto/target"
)

// Hooks are functions of the daemon that are called where clients' commands, or pages,
// come to a point that the daemon takes part in. Each is nil until it is set, and a
// later one replaces an earlier. Its methods are safe for concurrent use.
type Hooks struct {
	mu       sync.Mutex
	opened   Opened
	resumed  Resumed
	detached func()
	foreign  func(target.ID)
	dropping Dropping
}

// Opened takes a page that a client has created (Target.createTarget). It is
// to be sent to the address, where there is one. answered is called once: with true
// when the client may have it, with false when it did not get ready and goes; the
// client's command then fails. Opened must not wait.
type Opened func(id target.ID, url string, answered func(ready bool))

// OnCreate makes every page that a client creates from now on a blank one and
// hands it to f: Chrome does not hold a page that is created with an address
// for anybody, and its first request would go as it is.
func (h *Hooks) OnCreate(f Opened) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened = f
}

func (h *Hooks) create() Opened {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.opened
}

// Resumed takes a page that a client lets run (Runtime.runIfWaitingForDebugger).
// It calls let once the page may run, and must not wait.
type Resumed func(id target.ID, let func())

// OnResume has f decide when a page runs that a client lets go: a page that
// another one has opened waits once for everybody, and Chrome takes the first
// word for it, whoever else is still setting it up.
func (h *Hooks) OnResume(f Resumed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resumed = f
}

func (h *Hooks) resume() Resumed {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.resumed
}

// OnDetach has f called after each command, of whomever, that may have ended
// sessions of a target or its WebAuthn domain, once Chrome has carried it out.
// f must not wait.
func (h *Hooks) OnDetach(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.detached = f
}

// carriedOut calls OnDetach's function where a command calls for it.
func (h *Hooks) carriedOut(method string) {
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

// OnForeign has f called for each page that turns to an address that it may not show,
// once until [Mux.Settle]. The clients' sessions are gone by then. Clients do not see
// the page until Settle: the address that Chrome reports is the next one's while the
// document of the last is still there. f must not wait.
func (h *Hooks) OnForeign(f func(id target.ID)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.foreign = f
}

func (h *Hooks) turnedForeign() func(target.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.foreign
}

// Dropping readies a page for files that are dragged over it or dropped on it: after
// it Chrome does not open them where the page does not take them.
type Dropping func(ctx context.Context, page target.ID) error

// OnDrop has f called before each drag event with files that a client sends.
func (h *Hooks) OnDrop(f Dropping) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropping = f
}

func (h *Hooks) drop() Dropping {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dropping
}
