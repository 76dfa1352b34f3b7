package mux

import (
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/stasisd/stasis/state"
)

// maxGranted bounds what is remembered of clients' permissions; the oldest go.
const maxGranted = 1024

// Permissions remembers what clients have set of permissions. Its methods are safe for
// concurrent use.
type Permissions struct {
	mu      sync.Mutex
	granted []state.Granted
}

// Granted is what clients have set of permissions of the session's own profile
// and not reset, in order. Chrome forgets what a client set when it leaves.
func (s *Permissions) Granted() []state.Granted {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.granted)
}

// Regrant begins the record with what was granted before.
func (s *Permissions) Regrant(granted []state.Granted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted = slices.Clone(granted)
}

// grants says whether a command sets permissions, so that its parameters are
// kept until Chrome has answered.
func grants(method string) bool {
	return method == "Browser.setPermission" || method == "Browser.grantPermissions" || method == "Browser.resetPermissions"
}

// note records what a client has set, once Chrome has taken it. made reports whether a
// browser context is one that a client made: it ends with the client.
func (s *Permissions) note(p *pending, made func(context string) bool) {
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
	if made(c.BrowserContextID) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.method == "Browser.resetPermissions" {
		s.granted = nil
		return
	}
	g := state.Granted{Origin: c.Origin, EmbeddedOrigin: c.EmbeddedOrigin}
	if p.method == "Browser.setPermission" {
		g.Permission, g.Setting = c.Permission, c.Setting
	} else {
		g.All = c.Permissions
	}
	s.granted = append(slices.DeleteFunc(s.granted, g.Replaces), g)
	if over := len(s.granted) - maxGranted; over > 0 {
		s.granted = slices.Delete(s.granted, 0, over)
	}
}
