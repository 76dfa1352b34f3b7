package state

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// name names the things that the document itself holds.
func (k known) name() {
	for _, c := range k.doc.Cookies {
		k.add(ComponentCookies, c.Origin(), c.label(), thing{value: &c.Value, attributes: c.attributes()})
	}
	k.areas(ComponentLocalStorage, k.doc.Local)
	for _, tab := range k.doc.Tabs {
		origin := originOf(tab.URL)
		k.add(ComponentTabs, origin, shortURL(tab.URL), thing{value: &tab.URL})
		k.areas(ComponentSessionStorage, tab.Session)
		if tab.Name != "" {
			k.add(ComponentWindowName, origin, shortURL(tab.URL), thing{value: &tab.Name})
		}
		for i, entry := range tab.History {
			if i != tab.Current {
				k.add(ComponentHistory, origin, shortURL(entry.URL), thing{value: &entry.URL})
			}
		}
	}
	k.databases()
	for _, e := range k.doc.Extensions {
		k.add(ComponentExtensions, e.Origin(), e.Name, thing{attributes: map[string]string{
			"version": e.Version, "sha256": e.SHA256, "enabled": strconv.FormatBool(e.Enabled)}})
		for key, raw := range e.Session {
			value := string(raw)
			k.add(ComponentExtensionStorage, e.Origin(), key, thing{value: &value})
		}
	}
	for _, g := range k.doc.Permissions {
		k.add(ComponentPermissions, g.Origin, g.label(), thing{attributes: map[string]string{"setting": g.decided()}, untold: asText(g.Permission)})
	}
	k.passkeys()
	k.overrides()
}

func (k known) areas(component string, areas []Area) {
	for _, area := range areas {
		for _, i := range area.Items {
			k.add(component, area.StorageKey, i.Key, thing{value: &i.Value})
		}
	}
}

// databases are named where the document has them itself, and are counted
// beside that: another document may have no more than the numbers.
func (k known) databases() {
	for _, d := range k.doc.IndexedDB {
		for _, db := range d.Databases {
			value := asText(db)
			k.add(ComponentIndexedDB, d.Origin+"/", db.Name, thing{value: &value})
		}
		k.counts[place{ComponentIndexedDBRecords, d.Origin + "/"}] += d.Records()
	}
}

// passkeys are compared whole, and told by their IDs and counters.
func (k known) passkeys() {
	saved := k.doc.Passkeys
	if saved.Enabled {
		k.add(ComponentPasskeys, "", "authenticator", thing{})
	}
	for _, c := range saved.Credentials {
		count := strconv.FormatInt(c.SignCount, 10)
		id := base64.RawURLEncoding.EncodeToString(c.ID)
		c.SignCount = 0
		k.add(ComponentPasskeys, c.RPID, id, thing{attributes: map[string]string{"sign_count": count}, untold: asText(c)})
	}
}

// overrides are told by name alone: a proxy has a password.
func (k known) overrides() {
	v := reflect.ValueOf(k.doc.Overrides)
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() && (f.Kind() != reflect.Map || f.Len() > 0) {
			k.add(ComponentOverrides, "", wireName(v.Type().Field(i)), thing{untold: asText(f.Interface())})
		}
	}
}

// asText is a value in one string, to be compared.
func asText(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error() // of a number that JSON has not, which no document has
	}
	return string(raw)
}

// label names a cookie among those of its domain: one of the whole domain and
// one of its host alone are two.
func (c Cookie) label() string {
	name := c.Name
	if strings.HasPrefix(c.Domain, ".") {
		name += " of " + c.Domain
	}
	if c.Path != "/" {
		name += " at " + c.Path
	}
	if c.Partition != nil {
		name += " below " + c.Partition.TopLevelSite
	}
	return name
}

// attributes are what a site decides of a cookie beside its value and its name.
// One of the session has no end.
func (c Cookie) attributes() map[string]string {
	all := map[string]string{"http_only": strconv.FormatBool(c.HTTPOnly), "secure": strconv.FormatBool(c.Secure)}
	if c.SameSite != "" {
		all["same_site"] = c.SameSite
	}
	if c.Priority != "" {
		all["priority"] = c.Priority
	}
	if !c.Session {
		all["expires"] = time.Unix(int64(math.Round(c.Expires)), 0).UTC().Format(time.RFC3339)
	}
	return all
}

// label names what is granted.
func (g Granted) label() string {
	if g.Permission == nil {
		return "all that is granted"
	}
	name, _ := g.Permission["name"].(string)
	if g.EmbeddedOrigin != "" {
		name += " in " + g.EmbeddedOrigin
	}
	return name
}

func (g Granted) decided() string {
	if g.Permission == nil {
		return strings.Join(g.All, ", ")
	}
	return g.Setting
}

// shortURL is an address without what may be secret in it.
func shortURL(of string) string {
	u, err := url.Parse(of)
	switch {
	case err != nil:
		return "an address that is no URL"
	case u.Opaque != "" && u.Scheme != "about":
		return u.Scheme + ":" // data: and the like
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}
