package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// grantCommand holds the parameters of a client's Browser.setPermission or
// Browser.grantPermissions; see state.PermissionGrant.
type grantCommand struct {
	Origin         string         `json:"origin,omitempty"`
	EmbeddedOrigin string         `json:"embeddedOrigin,omitempty"`
	Permission     map[string]any `json:"permission,omitempty"`
	Setting        string         `json:"setting,omitempty"`
	Permissions    []string       `json:"permissions,omitzero"`
}

// regrant sets the permissions again that clients have set. It is needed at a restore,
// and after a client has disconnected, as Chrome drops the permissions then. Permissions
// that Chrome refuses count as dropped. Without permissions there is no line.
func regrant(ctx context.Context, driver *mux.Driver, granted []state.PermissionGrant) []state.Component {
	if len(granted) == 0 {
		return nil
	}
	line := state.Component{Name: state.ComponentPermissions, Saved: len(granted)}
	for _, g := range granted {
		method, c := "Browser.setPermission", grantCommand{Origin: g.Origin, EmbeddedOrigin: g.EmbeddedOrigin, Permission: g.Permission, Setting: g.Setting}
		if g.Permission == nil {
			method, c.Permissions = "Browser.grantPermissions", append([]string{}, g.All...)
		}
		if err := driver.Call(ctx, method, c, nil); err != nil {
			line.Dropped++
			line.Reason = report.Refused.With("this Chrome does not accept the permission or its origin")
			continue
		}
		line.Restored++
	}
	return []state.Component{line}
}

// setPermissions sets the permissions that are in force. Chrome has dropped them, because a
// client that set permissions has disconnected.
func (b *Browser) setPermissions(ctx context.Context) {
	b.mux.Permissions.Renew(ctx, func(granted []state.PermissionGrant) { b.grantAll(ctx, granted) })
}

func (b *Browser) grantAll(ctx context.Context, granted []state.PermissionGrant) {
	if b.shell() {
		setShellPolicy(ctx, b.driver, b.options.Overrides.Permissions())
	}
	_ = regrant(ctx, b.driver, granted)
}

// resetPermissions removes the permissions that are no longer in force. The mux calls it while
// no client changes them.
func (b *Browser) resetPermissions(ctx context.Context) {
	// After an error the permissions stay; later ones are still set.
	_ = b.driver.Call(ctx, "Browser.resetPermissions", nil, nil)
	b.grantAll(ctx, b.mux.Permissions.InForce())
}

// setShellPolicy sets the permission policy in the shell. Full Chrome reads it from the
// profile's preferences. Whatever would need a prompt is denied unless the policy says
// otherwise. Chrome drops these settings when a client that set permissions disconnects.
// The caller then sets the policy again, before the clients' own permissions.
func setShellPolicy(ctx context.Context, driver *mux.Driver, p *state.PermissionPolicy) {
	for _, g := range shellGrants(p) {
		// If this shell does not know a permission, no page can use it. A lost pipe is
		// detected elsewhere.
		_ = driver.Post(ctx, "", "Browser.setPermission", grantCommand{Origin: g.Origin, Permission: g.Permission, Setting: g.Setting})
	}
}

// shellGrants returns the commands for a policy in order: first the defaults, then the
// rules for origins.
func shellGrants(p *state.PermissionPolicy) []state.PermissionGrant {
	if p == nil {
		p = &state.PermissionPolicy{Default: state.DecisionDeny}
	}
	var all, own []state.PermissionGrant
	for _, name := range state.Permissions() {
		decision, decided := p.Default, profile.Prompts(name)
		for _, r := range p.Rules {
			switch {
			case r.Permission != name:
			case r.Origin == "" || r.Origin == "*":
				decision, decided = r.Decision, true
			default:
				own = append(own, grantsOf(name, r.Origin, r.Decision)...)
			}
		}
		if decided {
			all = append(all, grantsOf(name, "", decision)...)
		}
	}
	return append(all, own...)
}

// grantsOf converts a permission to CDP's names.
func grantsOf(name, origin string, d state.Decision) []state.PermissionGrant {
	setting := "denied"
	if d == state.DecisionAllow {
		setting = "granted"
	}
	names := []string{name}
	if name == "sensors" {
		names = []string{"accelerometer", "gyroscope", "magnetometer", "ambient-light-sensor"}
	}
	var grants []state.PermissionGrant
	for _, n := range names {
		descriptor := map[string]any{"name": n}
		if n == "midi-sysex" {
			descriptor = map[string]any{"name": "midi", "sysex": true}
		}
		grants = append(grants, state.PermissionGrant{Origin: origin, Permission: descriptor, Setting: setting})
	}
	return grants
}
