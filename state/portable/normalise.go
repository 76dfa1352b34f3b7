package portable

import (
	"fmt"
	"strings"

	"github.com/stasisd/stasis/state"
)

// domainAttribute is a cookie's domain, as a component of a [Loss].
const domainAttribute = "cookie_domain"

// normalise converts a file's cookies to those that Chrome can hold, written as Chrome
// writes them. It drops and names a single cookie that no Chrome accepts, because the
// rest of a real browser's file is still useful. Of cookies with the same identity it
// keeps the last.
func normalise(cookies []state.Cookie, lost *losses) []state.Cookie {
	last := make(map[string]int, len(cookies))
	settled := make([]state.Cookie, 0, len(cookies))
	for _, c := range cookies {
		c, why := asChrome(c, lost)
		if why != "" {
			lost.add(state.ComponentCookies, c.Origin(), 1, why)
			continue
		}
		if at, again := last[c.Identity()]; again {
			lost.add(state.ComponentCookies, c.Origin(), 1, "the same cookie occurs again: the last one is used")
			settled[at] = c
			continue
		}
		last[c.Identity()] = len(settled)
		settled = append(settled, c)
	}
	return settled
}

// asChrome returns a cookie as Chrome writes it, or why no Chrome accepts it.
func asChrome(c state.Cookie, lost *losses) (_ state.Cookie, why string) {
	domain, narrowed, ok := state.CookieDomain(c.Domain)
	if !ok {
		return c, "its domain is not a host name"
	}
	if c.Domain = domain; narrowed {
		lost.add(domainAttribute, c.Origin(), 1, "this domain cannot have subdomains: the cookie becomes a cookie of the host alone")
	}
	if c.Path, ok = cookiePath(c.Path); !ok {
		return c, "its path has .. segments (/../) or a backslash"
	}
	if c.Partition != nil && c.Partition.TopLevelSite == "" {
		c.Partition = nil
	}
	if c.Partition != nil {
		site := state.Site(c.Partition.TopLevelSite)
		if site == "" {
			return c, "its partition is not a site"
		}
		c.Partition = &state.PartitionKey{TopLevelSite: site, HasCrossSiteAncestor: c.Partition.HasCrossSiteAncestor}
	}
	return c, c.Unsettable()
}

// cookiePath returns a path as Chrome writes the path of a URL. ok is false if Chrome
// would change the path.
func cookiePath(path string) (canonical string, ok bool) {
	for _, step := range strings.Split(path, "/") {
		if step == "." || step == ".." {
			return path, false
		}
	}
	var out strings.Builder
	for i := range len(path) {
		switch c := path[i]; {
		case c == '\\':
			return path, false
		case c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>?`{}", c) >= 0:
			fmt.Fprintf(&out, "%%%02X", c)
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), true
}
