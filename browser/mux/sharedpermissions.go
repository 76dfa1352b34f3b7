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
	by clientContext
	state.PermissionGrant
}

// union returns the permissions that grants give to an origin. Browser.grantPermissions rejects all
// others, so Chrome must get those of all contexts: one client's tests would fail without the
// permissions of another's.
func union(origin string, grants ...state.PermissionGrant) []string {
	all := []string{}
	for _, g := range grants {
		if g.Origin == origin && g.Permission == nil {
			all = append(all, g.All...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// withShared returns others and the permissions of shared contexts. The lock is held.
func (s *Permissions) withShared(others ...state.PermissionGrant) []state.PermissionGrant {
	all := slices.Clone(others)
	for _, g := range s.shared {
		all = append(all, g.PermissionGrant)
	}
	return all
}

// InForce returns the permissions that Chrome must have: those of Granted, and those of shared
// contexts. Chrome drops them when a client disconnects that has set one.
func (s *Permissions) InForce() []state.PermissionGrant {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, every := slices.Clone(s.granted), s.withShared(s.granted...)
	for _, g := range s.shared {
		if g.Permission == nil {
			g.All = union(g.Origin, every...)
		}
		all = append(slices.DeleteFunc(all, g.Replaces), g.PermissionGrant)
	}
	return all
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

// reset removes the permissions of the session's own profile, also from Chrome.
func (s *Permissions) reset(ctx context.Context) {
	if s.lock(ctx) {
		defer s.unlock()
		s.SetGranted(nil)
		s.regrant(ctx)
	}
}

// end removes the permissions of a shared context, or without its ID those of all contexts of the
// client, also from Chrome.
func (s *Permissions) end(ctx context.Context, of clientContext) {
	ends := func(g sharedGrant) bool { return g.by.in(of) }
	s.mu.Lock()
	some := slices.ContainsFunc(s.shared, ends)
	s.mu.Unlock()
	if !some {
		return
	}
	locked := s.lock(ctx)
	s.mu.Lock()
	s.shared = slices.DeleteFunc(s.shared, ends)
	s.mu.Unlock()
	if locked {
		defer s.unlock()
		s.regrant(ctx)
	}
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
	if g.by.id == "" {
		return union(g.Origin, s.withShared(g.PermissionGrant)...), func() {}
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
	return union(g.Origin, s.withShared(s.granted...)...), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		at := slices.IndexFunc(s.shared, func(now sharedGrant) bool { return now.by == g.by && reflect.DeepEqual(now, g) })
		if at >= 0 { // else it was replaced or dropped in the meantime
			s.shared = append(slices.Delete(s.shared, at, at+1), replaced...)
		}
	}
}

// maxGrantBytes bounds the parameters of a permission command, which are recorded.
const maxGrantBytes = 16 << 10

// setPermission processes a client's permission command while there are shared contexts. It
// returns false for a context of Chrome. Commands go to Chrome on the mux's own session, so that
// no permission of another client ends when this one disconnects.
func (c *sharedCommand) setPermission() bool {
	named := ""
	if c.params.get("browserContextId", &named) == nil && c.m.made(named) {
		return false
	}
	params := c.params.write()
	if len(params) > maxGrantBytes {
		c.refuse(fmt.Errorf("its parameters are larger than %d bytes", maxGrantBytes))
		return true
	}
	ctx, cancel := context.WithTimeout(c.ctx, closeDeadline)
	defer cancel()
	by := clientContext{&c.peer, c.context}
	if c.method == "Browser.resetPermissions" {
		if c.context != "" {
			c.m.Permissions.end(ctx, by)
		} else {
			c.m.Permissions.reset(ctx)
		}
		c.answer("{}")
		return true
	}
	var p permissionCommand
	if err := json.Unmarshal(params, &p); err != nil {
		c.fail(&cdpError{codeParams, "Invalid parameters: " + err.Error()})
		return true
	}
	if !c.m.Permissions.lock(ctx) {
		c.refuse(errors.New("other permissions are being set, and Chrome does not answer"))
		return true
	}
	defer c.m.Permissions.unlock()
	c.m.mu.Lock()
	over := c.left || by.ended()
	c.m.mu.Unlock()
	if over {
		return true // nobody would remove the permission
	}
	grant := p.grant(c.method)
	all, undo := c.m.Permissions.share(sharedGrant{by, grant})
	if c.method == "Browser.grantPermissions" {
		_ = c.params.set("permissions", all) // never fails
	}
	id, asked := c.e.id, string(c.e.session)
	c.m.command("", c.method, string(c.params.write()), func(e envelope) {
		switch {
		case e.err != nil:
			undo()
		case c.context == "":
			c.m.Permissions.record(grant)
		}
		c.push(reply(id, e, asked))
	}, nil)
	return true
}
