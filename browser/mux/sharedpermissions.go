package mux

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/stasisd/stasis/state"
)

// sharedGrant is a permission that a client gave to one of its shared contexts.
type sharedGrant struct {
	by maker
	state.PermissionGrant
}

// union returns the permissions of all contexts for an origin, and those of more and own.
// Browser.grantPermissions rejects all others, so that one client's tests would fail without
// the permissions of another's.
func (s *Permissions) union(origin string, more []string, own []state.PermissionGrant) []string {
	all := append([]string{}, more...)
	for _, g := range own {
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
			g.All = s.union(g.Origin, nil, s.granted)
		}
		all = append(slices.DeleteFunc(all, g.Replaces), g.PermissionGrant)
	}
	return all
}

// drop removes the permissions of a peer's context, or with "" of all its contexts.
func (s *Permissions) drop(by maker) (dropped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.shared)
	s.shared = slices.DeleteFunc(s.shared, func(g sharedGrant) bool { return g.of(by) })
	return len(s.shared) < before
}

// of reports whether a context was given the permission; "" means any of the peer's contexts.
func (g sharedGrant) of(by maker) bool {
	return g.by.peer == by.peer && (by.context == "" || g.by.context == by.context)
}

// sharing reports whether a context of a peer has permissions.
func (s *Permissions) sharing(by maker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.shared, func(g sharedGrant) bool { return g.of(by) })
}

// shares reports whether any shared context has permissions.
func (s *Permissions) shares() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.shared) > 0
}

// lock waits until nobody else changes Chrome's permissions. It returns false if ctx ends before.
// Commands that were computed from the record at different times must not mix.
func (s *Permissions) lock(ctx context.Context) bool {
	select {
	case s.ordered <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Permissions) unlock() { <-s.ordered }

// Renew calls f with the permissions that are in force, while no client changes them. It does
// nothing if ctx ends before.
func (s *Permissions) Renew(ctx context.Context, f func([]state.PermissionGrant)) {
	if s.lock(ctx) {
		defer s.unlock()
		f(s.InForce())
	}
}

// dropPermissions removes the permissions of a shared context, or without its ID those of all
// contexts of the client, also from Chrome.
func (m *Mux) dropPermissions(ctx context.Context, by maker) {
	if !m.Permissions.sharing(by) {
		return
	}
	locked := m.Permissions.lock(ctx)
	m.Permissions.drop(by)
	if locked {
		defer m.Permissions.unlock()
		m.regrant(ctx)
	}
}

// regrant makes Chrome's permissions those that are in force. The caller has locked them.
func (m *Mux) regrant(ctx context.Context) {
	if f := m.Hooks.regrant(); f != nil {
		f(ctx)
	}
}

// maxGrantBytes bounds the parameters of a permission command, which are recorded.
const maxGrantBytes = 16 << 10

// sharePermissions processes a client's permission command while there are shared contexts. It
// returns false for a context of Chrome. Commands go to Chrome on the mux's own session, so that
// no permission of another client ends when this one disconnects.
func (c *sharedCommand) sharePermissions() bool {
	var named string
	if c.params.get("browserContextId", &named) == nil && named != "" && c.m.made(named) {
		return false
	}
	params := c.params.write()
	if len(params) > maxGrantBytes {
		c.fail(refusal(c.method, fmt.Errorf("its parameters are larger than %d bytes", maxGrantBytes)))
		return true
	}
	ctx, cancel := context.WithTimeout(c.ctx, closeDeadline)
	defer cancel()
	by := maker{&c.peer, c.context}
	if c.method == "Browser.resetPermissions" {
		if c.context != "" {
			c.m.dropPermissions(ctx, by)
		} else if c.m.Permissions.lock(ctx) {
			c.m.Permissions.note(&pending{method: c.method}, c.m.made)
			c.m.regrant(ctx)
			c.m.Permissions.unlock()
		}
		c.answer("{}")
		return true
	}
	var g struct {
		Origin         string         `json:"origin"`
		EmbeddedOrigin string         `json:"embeddedOrigin"`
		Permission     map[string]any `json:"permission"`
		Setting        string         `json:"setting"`
		Permissions    []string       `json:"permissions"`
	}
	if err := json.Unmarshal(params, &g); err != nil {
		c.fail(&cdpError{codeParams, "Invalid parameters: " + err.Error()})
		return true
	}
	if !c.m.Permissions.lock(ctx) {
		c.fail(refusal(c.method, errors.New("other permissions are being set, and Chrome does not answer")))
		return true
	}
	defer c.m.Permissions.unlock()
	c.m.mu.Lock()
	over := c.left || by.ended()
	c.m.mu.Unlock()
	if over {
		return true // nobody would remove the permission
	}
	grant := sharedGrant{by, state.PermissionGrant{Origin: g.Origin, EmbeddedOrigin: g.EmbeddedOrigin, Permission: g.Permission, Setting: g.Setting, All: g.Permissions}}
	all, undo := c.m.Permissions.share(grant)
	if c.method == "Browser.grantPermissions" {
		_ = c.params.set("permissions", all) // never fails
	}
	id, asked := c.e.id, string(c.e.session)
	c.m.command("", c.method, string(c.params.write()), func(e envelope) {
		switch {
		case e.err != nil:
			undo()
		case c.context == "":
			c.m.Permissions.note(&pending{method: c.method, params: params}, c.m.made)
		}
		c.push(reply(id, e, asked))
	}, nil)
	return true
}

// maxSharedGrants bounds the permissions of one client's shared contexts that are recorded. The
// oldest are dropped.
const maxSharedGrants = 256

// share records a permission of a shared context. It returns the union of permissions for the
// origin, and a function that undoes it because Chrome has refused. A permission of the default
// context is not recorded before Chrome has accepted it.
func (s *Permissions) share(g sharedGrant) (all []string, undo func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.by.context == "" {
		return s.union(g.Origin, g.All, nil), func() {}
	}
	var replaced []sharedGrant
	count := 0
	s.shared = slices.DeleteFunc(s.shared, func(old sharedGrant) bool {
		if old.by == g.by && g.Replaces(old.PermissionGrant) {
			replaced = append(replaced, old)
			return true
		}
		if old.by.peer == g.by.peer {
			count++
		}
		return false
	})
	if count >= maxSharedGrants {
		oldest := slices.IndexFunc(s.shared, func(old sharedGrant) bool { return old.by.peer == g.by.peer })
		s.shared = slices.Delete(s.shared, oldest, oldest+1)
	}
	s.shared = append(s.shared, g)
	return s.union(g.Origin, nil, s.granted), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		at := slices.IndexFunc(s.shared, func(now sharedGrant) bool { return now.by == g.by && reflect.DeepEqual(now, g) })
		if at >= 0 { // else it was replaced or dropped in the meantime
			s.shared = append(slices.Delete(s.shared, at, at+1), replaced...)
		}
	}
}
