package browser

import (
	"context"

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
func (b *Browser) regrant(ctx context.Context, granted []state.Granted) []state.Component {
	if len(granted) == 0 {
		return nil
	}
	line := state.Component{Name: state.ComponentPermissions, Saved: len(granted)}
	for _, g := range granted {
		method, c := "Browser.setPermission", grantCommand{Origin: g.Origin, EmbeddedOrigin: g.EmbeddedOrigin, Permission: g.Permission, Setting: g.Setting}
		if g.Permission == nil {
			method, c.Permissions = "Browser.grantPermissions", append([]string{}, g.All...)
		}
		if err := b.driver.Call(ctx, method, c, nil); err != nil {
			line.Dropped++
			line.Reason = report.Refused.With("this Chrome does not take the permission or its origin")
			continue
		}
		line.Restored++
	}
	return []state.Component{line}
}
