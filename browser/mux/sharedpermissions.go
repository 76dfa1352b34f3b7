package mux

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/stasisd/stasis/state"
)

// sharedGrant is a permission that a client gave to one of its shared contexts.
type sharedGrant struct {
	by maker
	state.PermissionGrant
}

// union returns the permissions of all contexts for an origin, with those of the session's own.
// Browser.grantPermissions rejects all others, so that one client's tests would fail without
// the permissions of another's.
func (s *Permissions) union(origin string) []string {
	var all []string
	for _, g := range s.granted {
		if g.Origin == origin && g.Permission == nil {
			all = append(all, g.All...)
		}
	}
	for _, g := range s.shared {
		if g.Origin == origin && g.Permission == nil {
			all = append(all, g.All...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// InForce returns the permissions that Chrome must have: those of Granted, and those of shared
// contexts. Chrome drops them when a client disconnects that has set one.
func (s *Permissions) InForce() []state.PermissionGrant {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.granted)
	for _, g := range s.shared {
		if g.Permission == nil {
			g.All = s.union(g.Origin)
		}
		all = append(slices.DeleteFunc(all, g.Replaces), g.PermissionGrant)
	}
	return all
}

// drop removes the permissions of a peer's context, or with "" of all its contexts.
func (s *Permissions) drop(p *peer, context string) (dropped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.shared)
	s.shared = slices.DeleteFunc(s.shared, func(g sharedGrant) bool {
		return g.by.peer == p && (context == "" || g.by.context == context)
	})
	return len(s.shared) < before
}

// dropPermissions removes the permissions of a shared context, or without its ID those of all
// contexts of the client, also from Chrome.
func (m *Mux) dropPermissions(ctx context.Context, by maker) {
	if !m.Permissions.drop(by.peer, by.context) {
		return
	}
	if f := m.Hooks.regrant(); f != nil {
		f(ctx)
	}
}

// sharePermissions processes a client's permission command for a shared context. It returns
// false for one of the default context, which Chrome processes as usual.
func (c *sharedCommand) sharePermissions() bool {
	if c.context == "" {
		return false
	}
	by := maker{c.shared.owner, c.context}
	if c.method == "Browser.resetPermissions" {
		c.tasks.Go(func() {
			c.m.dropPermissions(c.ctx, by)
			c.answer("{}")
		})
		return true
	}
	var g struct {
		Origin         string         `json:"origin"`
		EmbeddedOrigin string         `json:"embeddedOrigin"`
		Permission     map[string]any `json:"permission"`
		Setting        string         `json:"setting"`
		Permissions    []string       `json:"permissions"`
	}
	if err := json.Unmarshal(c.params.write(), &g); err != nil {
		c.fail(&cdpError{codeParams, "Invalid parameters: " + err.Error()})
		return true
	}
	grant := sharedGrant{by, state.PermissionGrant{Origin: g.Origin, EmbeddedOrigin: g.EmbeddedOrigin, Permission: g.Permission, Setting: g.Setting, All: g.Permissions}}
	c.m.Permissions.ordered.Lock()
	defer c.m.Permissions.ordered.Unlock()
	all, before := c.m.Permissions.share(grant)
	if c.method == "Browser.grantPermissions" && c.params.set("permissions", all) != nil {
		return false
	}
	id, asked := c.e.id, string(c.e.session)
	// On the mux's own session, so that it stays when the client disconnects.
	c.m.command("", c.method, string(c.params.write()), func(e envelope) {
		if e.err != nil {
			c.m.Permissions.restore(grant.by, before)
		}
		c.push(reply(id, e, asked))
	}, nil)
	return true
}

// share records a permission of a shared context. It returns the union of permissions for the
// origin, and what the context had before.
func (s *Permissions) share(g sharedGrant) (all []string, before []sharedGrant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, old := range s.shared {
		if old.by == g.by {
			before = append(before, old)
		}
	}
	s.shared = append(slices.DeleteFunc(s.shared, func(old sharedGrant) bool {
		return old.by == g.by && g.Replaces(old.PermissionGrant)
	}), g)
	if over := len(s.shared) - maxGranted; over > 0 {
		s.shared = slices.Delete(s.shared, 0, over)
	}
	return s.union(g.Origin), before
}

// restore sets the permissions of a shared context to those of before, because Chrome has
// refused a new one.
func (s *Permissions) restore(by maker, before []sharedGrant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared = append(slices.DeleteFunc(s.shared, func(old sharedGrant) bool { return old.by == by }), before...)
}
