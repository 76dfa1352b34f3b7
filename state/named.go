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

// name adds the names of everything that the document itself holds.
func (k knownState) name() {
	for _, c := range k.doc.Cookies {
		k.add(ComponentCookies, c.Origin(), c.label(), item{value: &c.Value, attributes: c.attributes()})
	}
	k.areas(ComponentLocalStorage, k.doc.Local)
	for _, tab := range k.doc.Tabs {
		origin := originOf(tab.URL)
		k.add(ComponentTabs, origin, ShortURL(tab.URL), item{value: &tab.URL})
		k.areas(ComponentSessionStorage, tab.Session)
		if tab.Name != "" {
			k.add(ComponentWindowName, origin, ShortURL(tab.URL), item{value: &tab.Name})
		}
		for i, entry := range tab.History {
			if i != tab.Current {
				k.add(ComponentHistory, origin, ShortURL(entry.URL), item{value: &entry.URL})
			}
		}
	}
	k.databases()
	for _, e := range k.doc.Extensions {
		k.add(ComponentExtensions, e.Origin(), e.Name, item{attributes: map[string]string{
			"version": e.Version, "sha256": e.SHA256, "enabled": strconv.FormatBool(e.Enabled)}})
		for key, raw := range e.Session {
			value := string(raw)
			k.add(ComponentExtensionStorage, e.Origin(), key, item{value: &value})
		}
	}
	for _, g := range k.doc.Permissions {
		k.add(ComponentPermissions, g.Origin, g.label(), item{attributes: map[string]string{"setting": g.decided()}, secret: asText(g.Permission)})
	}
	k.passkeys()
	k.overrides()
}

func (k knownState) areas(component string, areas []Area) {
	for _, area := range areas {
		for _, i := range area.Items {
			k.add(component, area.StorageKey, i.Key, item{value: &i.Value})
		}
	}
}

// databases are named if the document holds them. Their numbers are kept too, because the
// other document may have only numbers.
func (k knownState) databases() {
	for _, d := range k.doc.IndexedDB {
		for _, db := range d.Databases {
			value := asText(db)
			k.add(ComponentIndexedDB, d.Origin+"/", db.Name, item{value: &value})
		}
		k.counts[place{ComponentIndexedDBRecords, d.Origin + "/"}] += d.Records()
	}
}

// passkeys are compared as a whole. A change shows only their IDs and counters.
func (k knownState) passkeys() {
	saved := k.doc.Passkeys
	if saved.Enabled {
		k.add(ComponentPasskeys, "", "authenticator", item{})
	}
	for _, c := range saved.Credentials {
		count := strconv.FormatInt(c.SignCount, 10)
		id := base64.RawURLEncoding.EncodeToString(c.ID)
		c.SignCount = 0
		k.add(ComponentPasskeys, c.RPID, id, item{attributes: map[string]string{"sign_count": count}, secret: asText(c)})
	}
}

// overrides are shown by name only, because a proxy has a password.
func (k knownState) overrides() {
	v := reflect.ValueOf(k.doc.Overrides)
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() && (f.Kind() != reflect.Map || f.Len() > 0) {
			k.add(ComponentOverrides, "", wireName(v.Type().Field(i)), item{secret: asText(f.Interface())})
		}
	}
}

// asText returns a value as one string, for comparison.
func asText(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error() // JSON has no NaN or infinity, but no document has such a number either
	}
	return string(raw)
}

// label returns a cookie's name among those of its domain. A cookie of the whole domain
// and one of the host alone have different labels.
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

// attributes returns what a site sets of a cookie besides name and value. A session
// cookie has no expiry.
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

// label returns the name of a grant.
func (g PermissionGrant) label() string {
	if g.Permission == nil {
		return "all granted permissions"
	}
	name, _ := g.Permission["name"].(string)
	if g.EmbeddedOrigin != "" {
		name += " in " + g.EmbeddedOrigin
	}
	return name
}

func (g PermissionGrant) decided() string {
	if g.Permission == nil {
		return strings.Join(g.All, ", ")
	}
	return g.Setting
}

// ShortURL returns an address without the parts that may be secret.
func ShortURL(of string) string {
	u, err := url.Parse(of)
	switch {
	case err != nil:
		return "an address that is not a URL"
	case u.Opaque != "" && u.Scheme != "about":
		return u.Scheme + ":" // data: and other opaque URLs
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}
