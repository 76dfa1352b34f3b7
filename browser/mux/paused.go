package mux

import (
	"slices"

	"github.com/chromedp/cdproto/target"
)

// pausedWaiter is a call of [Driver.WhenResumed] that waits.
type pausedWaiter struct {
	target string
	then   func()
}

// WhenResumed calls then once no client keeps a page paused at its start, or at once if
// none does. A client keeps it paused from its attachment to the page until its
// Runtime.runIfWaitingForDebugger is answered or its session ends. A client that is
// attached to a paused tab attaches to the tab's page next, so it counts too. then must
// not wait.
func (d *Driver) WhenResumed(id target.ID, then func()) {
	d.m.mu.Lock()
	d.m.waiters = append(d.m.waiters, pausedWaiter{string(id), then})
	d.m.mu.Unlock()
	d.m.release()
}

// Paused reports whether a client keeps a page, or the tab that contains it, paused at its
// start. Such a page answers nothing.
func (d *Driver) Paused(id target.ID) bool {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	page := string(id)
	tab := d.m.targets.tabOf(page)
	for _, s := range d.m.sessions.all {
		if s.paused && (s.target == page || tab != "" && s.target == tab) {
			return true
		}
	}
	return false
}

// release calls the functions of WhenResumed whose page no client keeps paused.
func (m *Mux) release() {
	var released []pausedWaiter
	m.mu.Lock()
	m.waiters = slices.DeleteFunc(m.waiters, func(w pausedWaiter) bool {
		if m.keptPaused(w.target) {
			return false
		}
		released = append(released, w)
		return true
	})
	m.mu.Unlock()
	for _, w := range released {
		w.then()
	}
}

// keptPaused reports whether a client keeps a page paused. The lock is held.
func (m *Mux) keptPaused(page string) bool {
	for _, s := range m.sessions.all {
		if s.paused && (s.target == page || m.targets.all[s.target].Type == "tab") {
			return true
		}
	}
	return false
}

// onResumed returns the function for the answer to a client's
// Runtime.runIfWaitingForDebugger.
func (c *client) onResumed(s *session, answer func(envelope)) func(envelope) {
	return func(r envelope) {
		c.m.mu.Lock()
		s.paused = false
		c.m.mu.Unlock()
		answer(r)
		c.m.release()
	}
}
