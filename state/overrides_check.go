package state

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for machines without a time zone database

	"golang.org/x/net/http/httpguts"
	"golang.org/x/text/language"

	"github.com/stasisd/stasis/fault"
)

// Upper limits of overrides.
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

// Check refuses what Chrome or its command line would not accept or would misread. The
// error is invalid_field, with the field's name. Imported overrides go through the same
// check as those of a create.
func (o Overrides) Check() error {
	for _, err := range []error{
		o.Viewport.check(),
		isUserAgent(o.UserAgent),
		isLocale(o.Locale),
		isTimezone(o.Timezone),
		o.Geolocation.check(),
		areHeaders(o.ExtraHeaders),
		o.Proxy.check(),
		o.PermissionPolicy.check(),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func refused(field, allowed string, args ...any) error {
	return fault.New(fault.InvalidField, "state.overrides", "%s: %s", field, fmt.Sprintf(allowed, args...))
}

func (v *Viewport) check() error {
	switch {
	case v == nil:
		return nil
	case v.Width < 1 || v.Width > maxPixels:
		return refused("viewport.width", "must be from 1 to %d", maxPixels)
	case v.Height < 1 || v.Height > maxPixels:
		return refused("viewport.height", "must be from 1 to %d", maxPixels)
	case v.DeviceScaleFactor == 0:
		return nil
	}
	return between("viewport.device_scale_factor", v.DeviceScaleFactor, 0.1, maxScale)
}

func (g *Geolocation) check() error {
	if g == nil {
		return nil
	}
	for _, err := range []error{
		between("geolocation.latitude", g.Latitude, -90, 90),
		between("geolocation.longitude", g.Longitude, -180, 180),
		between("geolocation.accuracy", g.Accuracy, 0, maxAccuracy),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func between(field string, value, low, high float64) error {
	if value >= low && value <= high {
		return nil
	}
	return refused(field, "must be from %g to %g", low, high)
}

func isUserAgent(value string) error {
	if len(value) > maxUserAgent || !printable.MatchString(value) {
		return refused("user_agent", "must be 1 to %d printable ASCII characters", maxUserAgent)
	}
	return nil
}

// isLocale refuses strings that are not locales, and unregistered subtags: Chrome would
// silently use English for them.
func isLocale(value string) error {
	if value == "" {
		return nil
	}
	if _, err := language.Parse(value); err == nil && localePattern.MatchString(value) {
		return nil
	}
	return refused("locale", "must be a known language with or without script and region, such as de, de-DE or zh-Hans-CN")
}

func isTimezone(value string) error {
	if value == "" {
		return nil
	}
	// The machine's database has files besides the names, and Chrome does not know them.
	first, _, _ := strings.Cut(value, "/")
	own := slices.Contains([]string{"Local", "localtime", "posix", "posixrules", "right", "Factory"}, first)
	if _, err := time.LoadLocation(value); err != nil || own {
		return refused("timezone", "must be a name of the IANA time zone database, such as Europe/Berlin")
	}
	return nil
}

// areHeaders refuses headers that Chrome sets itself, and those that would be lost or
// allow request smuggling (RFC 9110 section 5).
func areHeaders(headers map[string]string) error {
	if len(headers) > maxHeaders {
		return refused("extra_headers", "must have at most %d headers", maxHeaders)
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, field, low := headers[name], "extra_headers."+name, strings.ToLower(name)
		twice := seen[low]
		seen[low] = true
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return refused("extra_headers", "%.80q is not a header name", name)
		case slices.Contains([]string{"host", "content-length", "connection", "keep-alive", "transfer-encoding", "upgrade", "te",
			"trailer", "cookie", "cookie2", "set-cookie", "expect"}, low), strings.HasPrefix(low, "proxy-"):
			return refused(field, "is set by Chrome; it cannot be overridden")
		case twice:
			return refused(field, "occurs twice; header names are case-insensitive")
		case len(value) > maxHeader || !httpguts.ValidHeaderFieldValue(value):
			return refused(field, "must be a header value of at most %d bytes", maxHeader)
		}
	}
	return nil
}

// check never includes the username or the password in an error.
func (p *Proxy) check() error {
	if p == nil {
		return nil
	}
	u, err := url.Parse(p.Server)
	direct := p.Server == ProxyDirect
	switch {
	case !direct && (err != nil || !slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) || u.Hostname() == "" ||
		!isPort(u.Port()) || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || !printable.MatchString(p.Server) ||
		strings.ContainsAny(p.Server, " ,;")):
		return refused("proxy.server", "must be http://, https:// or socks5:// with a host and a port (1 to 65535) and nothing more, or %s for none", ProxyDirect)
	case p.Username == "" && p.Password != "":
		return refused("proxy.password", "needs a username")
	case direct && (p.Username != "" || p.Bypass != ""):
		return refused("proxy", "%s must have no username and no bypass", ProxyDirect)
	case len(p.Username) > 255 || strings.Contains(p.Username, ":"):
		return refused("proxy.username", "must be at most 255 bytes without a colon")
	case len(p.Password) > 255:
		return refused("proxy.password", "must be at most 255 bytes long")
	case len(p.Bypass) > maxBypass || !printable.MatchString(p.Bypass):
		return refused("proxy.bypass", "must be host patterns separated by commas, at most %d printable ASCII characters", maxBypass)
	}
	return nil
}

func isPort(value string) bool {
	n, err := strconv.ParseUint(value, 10, 16)
	return err == nil && n > 0
}

func (p *PermissionPolicy) check() error {
	switch {
	case p == nil:
		return nil
	case !p.Default.known():
		return refused("permission_policy.default_decision", "must be allow or deny")
	case len(p.Rules) > maxRules:
		return refused("permission_policy.rules", "must have at most %d rules", maxRules)
	}
	for i, r := range p.Rules {
		rule := fmt.Sprintf("permission_policy.rules[%d]", i)
		switch {
		case r.Permission == "" || r.Decision == "":
			return refused(rule, "must have a permission and a decision")
		case !slices.Contains(Permissions(), r.Permission):
			return refused(rule+".permission", "must be one of %s", strings.Join(Permissions(), ", "))
		case !r.Decision.known():
			return refused(rule+".decision", "must be allow or deny")
		}
		if err := isOrigin(rule+".origin", r.Origin); err != nil {
			return err
		}
	}
	return nil
}

func (d Decision) known() bool { return d == DecisionAllow || d == DecisionDeny }

func isOrigin(field, value string) error {
	if value == "" || value == "*" {
		return nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.Path != "" || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(value, "*, ") || !printable.MatchString(value) {
		return refused(field, "must be an origin such as https://a.example or http://a.example:8080, or *")
	}
	return nil
}
