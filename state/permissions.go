package state

import "reflect"

// Permissions returns the names that a [PermissionRule] may have: those of the W3C
// Permissions API and its registry, and "sensors" for all sensors.
func Permissions() []string {
	return []string{
		"background-sync", "camera", "captured-surface-control", "clipboard-read", "geolocation", "idle-detection",
		"local-fonts", "local-network", "local-network-access", "loopback-network", "microphone", "midi", "midi-sysex",
		"notifications", "payment-handler", "persistent-storage", "sensors", "storage-access",
		"top-level-storage-access", "window-management",
	}
}

// Permissions returns the policy, plus what the other overrides imply: an overridden
// position is useful only if pages may ask for it.
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

// PermissionGrant is a permission that a client set over CDP, in the order of the calls.
// It is one permission (Browser.setPermission), or all permissions granted to an origin
// (Browser.grantPermissions). Strings are as CDP accepts them.
type PermissionGrant struct {
	Origin         string         `json:"origin,omitempty"` // "": all origins
	EmbeddedOrigin string         `json:"embedded_origin,omitempty"`
	Permission     map[string]any `json:"permission,omitempty"` // a descriptor of the W3C Permissions API
	Setting        string         `json:"setting,omitempty"`    // of Permission: granted | denied | prompt
	All            []string       `json:"all,omitempty"`        // if Permission is nil: exactly these are granted
}

// Replaces reports whether g completely replaces an earlier setting.
func (g PermissionGrant) Replaces(earlier PermissionGrant) bool {
	if g.Origin != earlier.Origin {
		return false
	}
	if g.Permission == nil {
		return true
	}
	return g.EmbeddedOrigin == earlier.EmbeddedOrigin && reflect.DeepEqual(g.Permission, earlier.Permission)
}
