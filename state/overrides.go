package state

import (
	"reflect"
	"slices"
	"strings"

	"github.com/stasisd/stasis/state/report"
)

// Overrides are values that a session's pages see instead of Chrome's own. A zero field
// overrides nothing. The whole struct is secret: a proxy has a password, and a header may
// be a token.
type Overrides struct {
	Viewport    *Viewport    `json:"viewport,omitempty"`
	UserAgent   string       `json:"user_agent,omitempty"`
	Locale      string       `json:"locale,omitempty"`   // BCP 47: "de-DE"
	Timezone    string       `json:"timezone,omitempty"` // IANA: "Europe/Berlin"
	Geolocation *Geolocation `json:"geolocation,omitempty"`
	// ExtraHeaders are sent with every request. An empty map that is not nil means no
	// headers, even if some were saved.
	ExtraHeaders     map[string]string `json:"extra_headers,omitempty"`
	Proxy            *Proxy            `json:"proxy,omitempty"`
	PermissionPolicy *PermissionPolicy `json:"permission_policy,omitempty"`
}

// Viewport is a page's size in CSS pixels.
type Viewport struct {
	Width             int64   `json:"width"`
	Height            int64   `json:"height"`
	DeviceScaleFactor float64 `json:"device_scale_factor"` // 0: Chrome's default
	Mobile            bool    `json:"mobile"`
}

// Geolocation is the position that pages see: degrees, and metres.
type Geolocation struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Accuracy  float64 `json:"accuracy"`
}

// ProxyDirect is the server of a [Proxy] that means no proxy.
const ProxyDirect = "direct://"

// Proxy is the proxy of requests.
type Proxy struct {
	Server   string `json:"server"` // http://, https:// or socks5://, host and port; or ProxyDirect
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	Bypass   string `json:"bypass,omitempty"` // comma-separated hosts that bypass the proxy, as in --proxy-bypass-list
}

// Decision is the answer to a page's permission request.
type Decision string

const (
	DecisionAllow Decision = "allow"
	DecisionDeny  Decision = "deny"
)

// PermissionPolicy decides permission requests for which Chrome would ask a person. Rules
// for an origin come first, then earlier decisions stored in the environment, then rules
// for all origins, then the default.
type PermissionPolicy struct {
	Default Decision         `json:"default_decision"`
	Rules   []PermissionRule `json:"rules,omitempty"`
}

// PermissionRule decides one permission for one origin, or for all ("*"). Of two rules
// for the same, the later one applies.
type PermissionRule struct {
	Permission string   `json:"permission"` // see Permissions
	Origin     string   `json:"origin"`     // "" and "*": all
	Decision   Decision `json:"decision"`
}

// WithDefaults returns o, with saved values for the fields that o does not set.
func (o Overrides) WithDefaults(saved Overrides) Overrides {
	merged := reflect.ValueOf(&o).Elem()
	old := reflect.ValueOf(saved)
	for i := range merged.NumField() {
		if merged.Field(i).IsZero() {
			merged.Field(i).Set(old.Field(i))
		}
	}
	return o
}

// WithoutPassword returns o without the proxy's password, and whether there was one.
func (o Overrides) WithoutPassword() (stripped Overrides, had bool) {
	if o.Proxy == nil || o.Proxy.Password == "" {
		return o, false
	}
	proxy := *o.Proxy
	proxy.Password, o.Proxy = "", &proxy
	return o, true
}

// Names lists the overrides that are set, by their JSON names.
func (o Overrides) Names() []string {
	names := []string{}
	v := reflect.ValueOf(o)
	for i := range v.NumField() {
		f := v.Field(i)
		if !f.IsZero() && (f.Kind() != reflect.Map || f.Len() > 0) {
			names = append(names, wireName(v.Type().Field(i)))
		}
	}
	return names
}

// DifferingNames lists by name the overrides in which o and from differ.
func (o Overrides) DifferingNames(from Overrides) []string {
	var names []string
	a, b := reflect.ValueOf(o), reflect.ValueOf(from)
	for i := range a.NumField() {
		x, y := a.Field(i), b.Field(i)
		if reflect.DeepEqual(x.Interface(), y.Interface()) || x.Kind() == reflect.Map && x.Len()+y.Len() == 0 {
			continue
		}
		names = append(names, wireName(a.Type().Field(i)))
	}
	return names
}

// OverrideLines reports which saved overrides were restored. Overrides that the create
// sets itself are replaced.
func OverrideLines(saved, own Overrides) []Component {
	names := saved.Names()
	if len(names) == 0 {
		return nil
	}
	line := Component{Name: ComponentOverrides, Saved: len(names)}
	var replaced []string
	for i, v := 0, reflect.ValueOf(own); i < v.NumField(); i++ {
		if name := wireName(v.Type().Field(i)); !v.Field(i).IsZero() && slices.Contains(names, name) {
			replaced = append(replaced, name)
		}
	}
	line.Dropped = len(replaced)
	line.Restored = line.Saved - line.Dropped
	if line.Dropped > 0 {
		line.Reason = report.Replaced.With("the create sets other values: " + strings.Join(replaced, ", "))
	}
	return []Component{line}
}

func wireName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
