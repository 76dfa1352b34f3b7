package browser

import (
	"context"

	"github.com/stasisd/stasis/browser/mux"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// grantCommand is a Browser.setPermission or Browser.grantPermissions as a
// client sent it; see state.Granted.
type grantCommand struct {
	Origin         string         `json:"origin,omitempty"`
	EmbeddedOrigin string         `json:"embeddedOrigin,omitempty"`
	Permission     map[string]any `json:"permission,omitempty"`
	Setting        string         `json:"setting,omitempty"`
	Permissions    []string       `json:"permissions,omitzero"`
}

// regrant sets what clients have set of permissions: at a restore, and after a
// client has left, with which Chrome forgets it. Origins that Chrome does not
// take are counted as dropped; nothing set is no line.
func regrant(ctx context.Context, driver *mux.Driver, granted []state.Granted) []state.Component {
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
			line.Reason = report.Refused.With("this Chrome does not take the permission or its origin")
			continue
		}
		line.Restored++
	}
	return []state.Component{line}
}

// setShellPolicy decides in the shell what pages may, which full Chrome reads from
// the profile's preferences: what a person would be asked is denied unless the
// policy says otherwise. Chrome forgets it with a client that has set permissions
// itself, so it is said again then, before what clients had set.
func setShellPolicy(ctx context.Context, driver *mux.Driver, p *state.PermissionPolicy) {
	for _, g := range shellGrants(p) {
		// What this shell does not know no page has. A lost pipe shows elsewhere.
		_ = driver.Post(ctx, "", "Browser.setPermission", grantCommand{Origin: g.Origin, Permission: g.Permission, Setting: g.Setting})
	}
}

// shellGrants are the commands of a policy, in order: what holds everywhere,
// then the rules of origins.
func shellGrants(p *state.PermissionPolicy) []state.Granted {
	if p == nil {
		p = &state.PermissionPolicy{Default: state.DecisionDeny}
	}
	var all, own []state.Granted
	for _, name := range state.Permissions() {
		decision, decided := p.Default, profile.Asks(name)
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

// grantsOf spells a permission as CDP has it.
func grantsOf(name, origin string, d state.Decision) []state.Granted {
	setting := "denied"
	if d == state.DecisionAllow {
		setting = "granted"
	}
	names := []string{name}
	if name == "sensors" {
		names = []string{"accelerometer", "gyroscope", "magnetometer", "ambient-light-sensor"}
	}
	var grants []state.Granted
	for _, n := range names {
		descriptor := map[string]any{"name": n}
		if n == "midi-sysex" {
			descriptor = map[string]any{"name": "midi", "sysex": true}
		}
		grants = append(grants, state.Granted{Origin: origin, Permission: descriptor, Setting: setting})
	}
	return grants
}
