package mux

import (
	"context"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/stasisd/stasis/state"
)

// maxGranted bounds how many permissions are recorded. The oldest are dropped.
const maxGranted = 1024

// Permissions records the permissions that clients set. Its methods are safe for
// concurrent use. What shared contexts add is in sharedpermissions.go.
type Permissions struct {
	ordered chan struct{}         // holds a value while somebody changes Chrome's permissions
	regrant func(context.Context) // makes Chrome's permissions those that are in force

	mu      sync.Mutex
	granted []state.PermissionGrant
	shared  []sharedGrant // of shared contexts
}

func newPermissions(regrant func(context.Context)) *Permissions {
	return &Permissions{ordered: make(chan struct{}, 1), regrant: regrant}
}

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

// permissionCommand holds the parameters of a command that sets permissions.
type permissionCommand struct {
	Origin           string         `json:"origin"`
	EmbeddedOrigin   string         `json:"embeddedOrigin"`
	Permission       map[string]any `json:"permission"`
	Setting          string         `json:"setting"`
	Permissions      []string       `json:"permissions"`
	BrowserContextID string         `json:"browserContextId"`
}

// grant returns what Browser.setPermission or Browser.grantPermissions sets.
func (c permissionCommand) grant(method string) state.PermissionGrant {
	g := state.PermissionGrant{Origin: c.Origin, EmbeddedOrigin: c.EmbeddedOrigin}
	if method == "Browser.setPermission" {
		g.Permission, g.Setting = c.Permission, c.Setting
	} else {
		g.All = c.Permissions
	}
	return g
}

// note records a permission after Chrome has accepted it. made reports whether a client
// created a browser context. Permissions of such a context are not recorded, as it ends
// with the client.
func (s *Permissions) note(p *pending, made func(context string) bool) {
	var c permissionCommand
	if params := p.params(); params != nil && json.Unmarshal(params, &c) != nil || made(c.BrowserContextID) {
		return
	}
	if p.method == "Browser.resetPermissions" {
		s.SetGranted(nil)
		return
	}
	s.record(c.grant(p.method))
}

// record adds a permission of the session's own profile.
func (s *Permissions) record(g state.PermissionGrant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted = append(slices.DeleteFunc(s.granted, g.Replaces), g)
	if over := len(s.granted) - maxGranted; over > 0 {
		s.granted = slices.Delete(s.granted, 0, over)
	}
}
