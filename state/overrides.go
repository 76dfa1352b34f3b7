package state

import (
	"reflect"
	"slices"
	"strings"

	"github.com/stasisd/stasis/state/report"
)

// Overrides are what a session's pages are told instead of what Chrome would
// tell them. A field that is zero is not overridden. They are secret as a
// whole: a proxy has a password, and a header may be a token.
type Overrides struct {
	Viewport    *Viewport    `json:"viewport,omitempty"`
	UserAgent   string       `json:"user_agent,omitempty"`
	Locale      string       `json:"locale,omitempty"`   // BCP 47: "de-DE"
	Timezone    string       `json:"timezone,omitempty"` // IANA: "Europe/Berlin"
	Geolocation *Geolocation `json:"geolocation,omitempty"`
	// ExtraHeaders go with every request. Empty and not nil, there are none,
	// whatever was saved.
	ExtraHeaders     map[string]string `json:"extra_headers,omitempty"`
	Proxy            *Proxy            `json:"proxy,omitempty"`
	PermissionPolicy *PermissionPolicy `json:"permission_policy,omitempty"`
}

// Viewport is a page's size in CSS pixels.
type Viewport struct {
	Width             int64   `json:"width"`
	Height            int64   `json:"height"`
	DeviceScaleFactor float64 `json:"device_scale_factor"` // 0: Chrome's own
	Mobile            bool    `json:"mobile"`
}

// Geolocation is where pages are told that they are: degrees, and metres.
type Geolocation struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
	Accuracy  float64 `json:"accuracy"`
}

// ProxyDirect is the server of a [Proxy] that stands for none.
const ProxyDirect = "direct://"

// Proxy is what requests go through.
type Proxy struct {
	Server   string `json:"server"` // http://, https:// or socks5://, host and port; or ProxyDirect
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	Bypass   string `json:"bypass,omitempty"` // hosts that are reached without it, comma-separated, as of --proxy-bypass-list
}

// Decision is what becomes of a page's request for a permission.
type Decision string

const (
	DecisionAllow Decision = "allow"
	DecisionDeny  Decision = "deny"
)

// PermissionPolicy decides what Chrome would ask a person. A rule for an origin
// comes first, then what the environment itself has decided for one, then a
// rule for all, then the default.
type PermissionPolicy struct {
	Default Decision         `json:"default_decision"`
	Rules   []PermissionRule `json:"rules,omitempty"`
}

// PermissionRule decides one permission for one origin, or for all ("*").
// Where two rules speak of the same, the later one holds.
type PermissionRule struct {
	Permission string   `json:"permission"` // see Permissions
	Origin     string   `json:"origin"`     // "" and "*": all
	Decision   Decision `json:"decision"`
}

// Over returns o with the saved overrides where o names none.
func (o Overrides) Over(saved Overrides) Overrides {
	merged := reflect.ValueOf(&o).Elem()
	old := reflect.ValueOf(saved)
	for i := range merged.NumField() {
		if merged.Field(i).IsZero() {
			merged.Field(i).Set(old.Field(i))
		}
	}
	return o
}

// WithoutPassword leaves the proxy's out, and says whether there was one.
func (o Overrides) WithoutPassword() (told Overrides, had bool) {
	if o.Proxy == nil || o.Proxy.Password == "" {
		return o, false
	}
	proxy := *o.Proxy
	proxy.Password, o.Proxy = "", &proxy
	return o, true
}

// Names lists the overrides that are set, by their names on the wire.
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

// Differ lists by name the overrides that two sets do not have in common.
func (o Overrides) Differ(from Overrides) []string {
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

// OverrideLines report what became of saved overrides: those that the create
// names itself are replaced.
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
		line.Reason = report.Replaced.With("the create names its own: " + strings.Join(replaced, ", "))
	}
	return []Component{line}
}

func wireName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}
