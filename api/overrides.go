package api

import (
	"fmt"

	"github.com/stasisd/stasis/state"
)

// overridesBody is the part of a create that overrides what pages see.
type overridesBody struct {
	Viewport         *viewportBody     `json:"viewport"`
	UserAgent        string            `json:"user_agent"`
	Locale           string            `json:"locale"`
	Timezone         string            `json:"timezone"`
	Geolocation      *geolocationBody  `json:"geolocation"`
	ExtraHeaders     map[string]string `json:"extra_headers"`
	Proxy            *proxyBody        `json:"proxy"`
	PermissionPolicy *policyBody       `json:"permission_policy"`
}

type viewportBody struct {
	Width             *int64   `json:"width"`
	Height            *int64   `json:"height"`
	DeviceScaleFactor *float64 `json:"device_scale_factor"`
	Mobile            bool     `json:"mobile"`
}

type geolocationBody struct {
	Latitude  *float64 `json:"latitude"`
	Longitude *float64 `json:"longitude"`
	Accuracy  *float64 `json:"accuracy"`
}

type proxyBody struct {
	Server   string `json:"server"`
	Username string `json:"username"`
	Password string `json:"password" empty:"ok"`
	Bypass   string `json:"bypass" empty:"ok"`
}

type policyBody struct {
	Default string     `json:"default_decision"`
	Rules   []ruleBody `json:"rules"`
}

type ruleBody struct {
	Permission string `json:"permission"`
	Origin     string `json:"origin"`
	Decision   string `json:"decision"`
}

// check checks what only the JSON shows, such as absent fields. [state.Overrides.Check]
// checks the rest, as for the overrides of a document.
func (o *overridesBody) check() error {
	if err := o.complete(); err != nil {
		return err
	}
	if v := o.Viewport; v != nil && v.DeviceScaleFactor != nil && *v.DeviceScaleFactor == 0 {
		return invalid("viewport.device_scale_factor", "must be from 0.1 to 10")
	}
	return o.overrides().Check()
}

// complete returns an error for the first required field that is absent.
func (o *overridesBody) complete() error {
	var missing []error
	need := func(field string, given bool) {
		if !given {
			missing = append(missing, invalid(field, "is required"))
		}
	}
	if v := o.Viewport; v != nil {
		need("viewport.width", v.Width != nil)
		need("viewport.height", v.Height != nil)
	}
	if g := o.Geolocation; g != nil {
		need("geolocation.latitude", g.Latitude != nil)
		need("geolocation.longitude", g.Longitude != nil)
	}
	if p := o.Proxy; p != nil {
		need("proxy.server", p.Server != "")
	}
	if p := o.PermissionPolicy; p != nil {
		for i, r := range p.Rules {
			need(fmt.Sprintf("permission_policy.rules[%d].permission", i), r.Permission != "")
			need(fmt.Sprintf("permission_policy.rules[%d].decision", i), r.Decision != "")
		}
	}
	return firstOf(missing...)
}

// overrides converts the checked body for package session.
func (o *overridesBody) overrides() state.Overrides {
	s := state.Overrides{UserAgent: o.UserAgent, Locale: o.Locale, Timezone: o.Timezone, ExtraHeaders: o.ExtraHeaders}
	if v := o.Viewport; v != nil {
		s.Viewport = &state.Viewport{Width: *v.Width, Height: *v.Height, DeviceScaleFactor: valueOr(v.DeviceScaleFactor, 0), Mobile: v.Mobile}
	}
	if g := o.Geolocation; g != nil {
		s.Geolocation = &state.Geolocation{Latitude: *g.Latitude, Longitude: *g.Longitude, Accuracy: valueOr(g.Accuracy, 1)}
	}
	if p := o.Proxy; p != nil {
		s.Proxy = &state.Proxy{Server: p.Server, Username: p.Username, Password: p.Password, Bypass: p.Bypass}
	}
	if p := o.PermissionPolicy; p != nil {
		s.PermissionPolicy = &state.PermissionPolicy{Default: state.DecisionDeny}
		if p.Default != "" {
			s.PermissionPolicy.Default = state.Decision(p.Default)
		}
		for _, r := range p.Rules {
			s.PermissionPolicy.Rules = append(s.PermissionPolicy.Rules,
				state.PermissionRule{Permission: r.Permission, Origin: r.Origin, Decision: state.Decision(r.Decision)})
		}
	}
	return s
}

// valueOr returns *value, or absent if value is nil.
func valueOr(value *float64, absent float64) float64 {
	if value == nil {
		return absent
	}
	return *value
}
