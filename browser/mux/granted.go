package mux

import (
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/stasisd/stasis/state"
)

// maxGranted bounds what is remembered of clients' permissions; the oldest go.
const maxGranted = 1024

// Granted is what clients have set of permissions of the session's own profile
// and not reset, in order. Chrome forgets what a client set when it leaves.
func (m *Mux) Granted() []state.Granted {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.granted)
}

// Regrant begins the record with what was granted before.
func (m *Mux) Regrant(granted []state.Granted) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.granted = slices.Clone(granted)
}

// grants says whether a command sets permissions, so that its parameters are
// kept until Chrome has answered.
func grants(method string) bool {
	return method == "Browser.setPermission" || method == "Browser.grantPermissions" || method == "Browser.resetPermissions"
}

// note takes down what a client has set, once Chrome has taken it.
func (m *Mux) note(p *pending) {
	var c struct {
		Origin           string         `json:"origin"`
		EmbeddedOrigin   string         `json:"embeddedOrigin"`
		Permission       map[string]any `json:"permission"`
		Setting          string         `json:"setting"`
		Permissions      []string       `json:"permissions"`
		BrowserContextID string         `json:"browserContextId"`
	}
	if p.params != nil && json.Unmarshal(p.params, &c) != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, made := m.targets.contexts[c.BrowserContextID]; made {
		return // a context of the client's own, which ends with it
	}
	if p.method == "Browser.resetPermissions" {
		m.granted = nil
		return
	}
	g := state.Granted{Origin: c.Origin, EmbeddedOrigin: c.EmbeddedOrigin}
	if p.method == "Browser.setPermission" {
		g.Permission, g.Setting = c.Permission, c.Setting
	} else {
		g.All = c.Permissions
	}
	m.granted = append(slices.DeleteFunc(m.granted, g.Replaces), g)
	if over := len(m.granted) - maxGranted; over > 0 {
		m.granted = slices.Delete(m.granted, 0, over)
	}
}
