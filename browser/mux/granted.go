package mux

import (
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/stasisd/stasis/state"
)

// maxGranted bounds how many permissions are recorded. The oldest are dropped.
const maxGranted = 1024

// Permissions records the permissions that clients set. Its methods are safe for
// concurrent use.
type Permissions struct {
	ordered chan struct{} // holds a value while somebody changes Chrome's permissions

	mu      sync.Mutex
	granted []state.PermissionGrant
	shared  []sharedGrant // of shared contexts
}

func newPermissions() *Permissions { return &Permissions{ordered: make(chan struct{}, 1)} }

// Granted returns the permissions of the session's own profile that clients have set and
// not reset, in order. Chrome itself drops a client's permissions when the client
// disconnects.
func (s *Permissions) Granted() []state.PermissionGrant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.granted)
}

// SetGranted replaces the record, with the permissions of an earlier browser.
func (s *Permissions) SetGranted(granted []state.PermissionGrant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted = slices.Clone(granted)
}

// grants reports whether a command sets permissions. The parameters of such a command are
// kept until Chrome has answered.
func grants(method string) bool {
	return method == "Browser.setPermission" || method == "Browser.grantPermissions" || method == "Browser.resetPermissions"
}

// note records a permission after Chrome has accepted it. made reports whether a client
// created a browser context. Permissions of such a context are not recorded, as it ends
// with the client.
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
	g := state.PermissionGrant{Origin: c.Origin, EmbeddedOrigin: c.EmbeddedOrigin}
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
