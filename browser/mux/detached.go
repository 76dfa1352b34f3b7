package mux

// OnDetach has f called after each command, of whomever, that may have ended
// sessions of a target or its WebAuthn domain, once Chrome has carried it out.
// f must not wait.
func (m *Mux) OnDetach(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.detached = f
}

// tellDetached calls OnDetach's function where a command calls for it.
func (m *Mux) tellDetached(method string) {
	switch method {
	case "Target.detachFromTarget", "Target.setAutoAttach", "WebAuthn.disable":
	default:
		return
	}
	m.mu.Lock()
	f := m.detached
	m.mu.Unlock()
	if f != nil {
		f()
	}
}
