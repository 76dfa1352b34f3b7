package api

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the names of time zones, on machines without them too

	"golang.org/x/net/http/httpguts"

	"github.com/stasisd/stasis/state"
)

// overridesBody is the part of a create that says what its pages are told.
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
	Width             int64    `json:"width"`
	Height            int64    `json:"height"`
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

// What overrides may be at most.
const (
	maxPixels    = 10000
	maxScale     = 10
	maxUserAgent = 1024 // bytes
	maxHeaders   = 64
	maxHeader    = 8192 // bytes of a value
	maxAccuracy  = 1e6  // metres
	maxRules     = 256
	maxBypass    = 4096 // bytes
)

var (
	localePattern = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?$`)
	printable     = regexp.MustCompile(`^[\x20-\x7e]*$`)
)

func (o *overridesBody) check() error {
	return firstOf(
		o.Viewport.check(),
		isUserAgent(o.UserAgent),
		isLocale(o.Locale),
		isTimezone(o.Timezone),
		o.Geolocation.check(),
		areHeaders(o.ExtraHeaders),
		o.Proxy.check(),
		o.PermissionPolicy.check(),
	)
}

func (v *viewportBody) check() error {
	if v == nil {
		return nil
	}
	return firstOf(
		within("viewport.width", v.Width, 1, maxPixels),
		within("viewport.height", v.Height, 1, maxPixels),
		between("viewport.device_scale_factor", v.DeviceScaleFactor, 0.1, maxScale),
	)
}

func (g *geolocationBody) check() error {
	if g == nil {
		return nil
	}
	if g.Latitude == nil || g.Longitude == nil {
		return invalid("geolocation", "latitude and longitude must be there")
	}
	return firstOf(
		between("geolocation.latitude", g.Latitude, -90, 90),
		between("geolocation.longitude", g.Longitude, -180, 180),
		between("geolocation.accuracy", g.Accuracy, 0, maxAccuracy),
	)
}

// between refuses a number beyond its bounds; an absent one passes.
func between(field string, value *float64, low, high float64) error {
	if value == nil || *value >= low && *value <= high {
		return nil
	}
	return invalid(field, "must be from %g to %g", low, high)
}

func isUserAgent(value string) error {
	if len(value) > maxUserAgent || !printable.MatchString(value) {
		return invalid("user_agent", "must be 1 to %d printable ASCII characters", maxUserAgent)
	}
	return nil
}

func isLocale(value string) error {
	if value == "" || localePattern.MatchString(value) {
		return nil
	}
	return invalid("locale", "must be a language with or without script and region, such as de, de-DE or zh-Hans-CN")
}

func isTimezone(value string) error {
	if value == "" {
		return nil
	}
	if _, err := time.LoadLocation(value); err != nil || value == "Local" {
		return invalid("timezone", "must be a name of the IANA time zone database, such as Europe/Berlin")
	}
	return nil
}

// areHeaders refuses what Chrome sets itself, and what would be lost or
// smuggled (RFC 9110 section 5).
func areHeaders(headers map[string]string) error {
	if len(headers) > maxHeaders {
		return invalid("extra_headers", "must be at most %d", maxHeaders)
	}
	for name, value := range headers {
		field := "extra_headers." + name
		switch low := strings.ToLower(name); {
		case !httpguts.ValidHeaderFieldName(name):
			return invalid("extra_headers", "%s is not a header's name", quoted(name))
		case slices.Contains([]string{"host", "content-length", "connection", "keep-alive", "transfer-encoding", "upgrade", "te",
			"trailer", "cookie"}, low), strings.HasPrefix(low, "proxy-"):
			return invalid(field, "is Chrome's own to set")
		case len(value) > maxHeader || !httpguts.ValidHeaderFieldValue(value):
			return invalid(field, "must be a header's value of at most %d bytes", maxHeader)
		}
	}
	return nil
}

// check never names the username or the password.
func (p *proxyBody) check() error {
	if p == nil {
		return nil
	}
	u, err := url.Parse(p.Server)
	direct := p.Server == state.ProxyDirect
	switch {
	case !direct && (err != nil || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) || u.Hostname() == "" ||
		u.Port() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || !printable.MatchString(p.Server) ||
		strings.ContainsAny(p.Server, " ,;")):
		return invalid("proxy.server", "must be http://, https:// or socks5:// with a host and a port and nothing more, or %s for none", state.ProxyDirect)
	case p.Username == "" && p.Password != "":
		return invalid("proxy.password", "needs a username")
	case direct && (p.Username != "" || p.Bypass != ""):
		return invalid("proxy", "%s takes no username and no bypass", state.ProxyDirect)
	case len(p.Username) > 255 || strings.Contains(p.Username, ":"):
		return invalid("proxy.username", "must be at most 255 bytes without a colon")
	case len(p.Password) > 255:
		return invalid("proxy.password", "must be at most 255 bytes long")
	case len(p.Bypass) > maxBypass || !printable.MatchString(p.Bypass):
		return invalid("proxy.bypass", "must be host patterns with commas between, at most %d printable ASCII characters", maxBypass)
	}
	return nil
}

func (p *policyBody) check() error {
	if p == nil {
		return nil
	}
	if err := oneOf("permission_policy.default_decision", p.Default, "allow", "deny"); err != nil {
		return err
	}
	if len(p.Rules) > maxRules {
		return invalid("permission_policy.rules", "must be at most %d", maxRules)
	}
	for _, r := range p.Rules {
		if r.Permission == "" || r.Decision == "" {
			return invalid("permission_policy.rules", "each must have a permission and a decision")
		}
		if err := firstOf(
			oneOf("permission_policy.rules.permission", r.Permission, state.Permissions()...),
			oneOf("permission_policy.rules.decision", r.Decision, "allow", "deny"),
			isOrigin("permission_policy.rules.origin", r.Origin),
		); err != nil {
			return err
		}
	}
	return nil
}

func isOrigin(field, value string) error {
	if value == "" || value == "*" {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.Path != "" || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(value, "*, ") || !printable.MatchString(value) {
		return invalid(field, "must be an origin such as https://a.example or http://a.example:8080, or *")
	}
	return nil
}

// overrides are the checked body as the rooms below take it.
func (o *overridesBody) overrides() state.Overrides {
	s := state.Overrides{UserAgent: o.UserAgent, Locale: o.Locale, Timezone: o.Timezone, ExtraHeaders: o.ExtraHeaders}
	if v := o.Viewport; v != nil {
		s.Viewport = &state.Viewport{Width: v.Width, Height: v.Height, DeviceScaleFactor: or(v.DeviceScaleFactor, 0), Mobile: v.Mobile}
	}
	if g := o.Geolocation; g != nil {
		s.Geolocation = &state.Geolocation{Latitude: *g.Latitude, Longitude: *g.Longitude, Accuracy: or(g.Accuracy, 1)}
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

// or is a number, or what it is where it is absent.
func or(value *float64, absent float64) float64 {
	if value == nil {
		return absent
	}
	return *value
}
