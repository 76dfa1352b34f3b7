package state

import "reflect"

// Permissions are the names that a [PermissionRule] may have: those of the W3C
// Permissions API and its registry, and "sensors" for all of theirs.
func Permissions() []string {
	return []string{
		"background-sync", "camera", "captured-surface-control", "clipboard-read", "geolocation", "idle-detection",
		"local-fonts", "local-network", "local-network-access", "loopback-network", "microphone", "midi", "midi-sysex",
		"notifications", "payment-handler", "persistent-storage", "sensors", "storage-access",
		"top-level-storage-access", "window-management",
	}
}

// Permissions is the policy with what the other overrides imply: a position
// that no page may ask for would be none.
func (o Overrides) Permissions() *PermissionPolicy {
	const name = "geolocation"
	if o.Geolocation == nil {
		return o.PermissionPolicy
	}
	p := PermissionPolicy{Default: DecisionDeny}
	if o.PermissionPolicy != nil {
		p = *o.PermissionPolicy
		for _, r := range p.Rules {
			if r.Permission == name {
				return o.PermissionPolicy
			}
		}
	}
	p.Rules = append([]PermissionRule{{Permission: name, Origin: "*", Decision: DecisionAllow}}, p.Rules...)
	return &p
}

// Granted is what a client has set over CDP, in the order of setting: one
// permission (Browser.setPermission), or the whole of what is granted to an
// origin (Browser.grantPermissions). Strings are as CDP takes them.
type Granted struct {
	Origin         string         `json:"origin,omitempty"` // "": all
	EmbeddedOrigin string         `json:"embedded_origin,omitempty"`
	Permission     map[string]any `json:"permission,omitempty"` // a descriptor of the W3C Permissions API
	Setting        string         `json:"setting,omitempty"`    // of Permission: granted | denied | prompt
	All            []string       `json:"all,omitempty"`        // without Permission: these, and no others
}

// Replaces reports whether g leaves nothing of an earlier setting.
func (g Granted) Replaces(earlier Granted) bool {
	if g.Origin != earlier.Origin {
		return false
	}
	if g.Permission == nil {
		return true
	}
	return g.EmbeddedOrigin == earlier.EmbeddedOrigin && reflect.DeepEqual(g.Permission, earlier.Permission)
}
