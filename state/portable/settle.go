package portable

import (
	"fmt"
	"strings"

	"github.com/stasisd/stasis/state"
)

// domainAttribute is a cookie's domain, as a component of a [Loss].
const domainAttribute = "cookie_domain"

// settle makes the cookies of a file those that a Chrome can hold, as it would
// write them. One that no Chrome takes is dropped by itself and named, for a
// real browser's file with one odd cookie is worth having still; so is every
// one but the last of cookies that a jar cannot tell apart.
func settle(cookies []state.Cookie, lost *losses) []state.Cookie {
	last := make(map[string]int, len(cookies))
	settled := make([]state.Cookie, 0, len(cookies))
	for _, c := range cookies {
		c, why := asChrome(c, lost)
		if why != "" {
			lost.add(state.ComponentCookies, c.Origin(), 1, why)
			continue
		}
		if at, again := last[c.Identity()]; again {
			lost.add(state.ComponentCookies, c.Origin(), 1, "the same cookie is there again: the last one counts")
			settled[at] = c
			continue
		}
		last[c.Identity()] = len(settled)
		settled = append(settled, c)
	}
	return settled
}

// asChrome writes a cookie as Chrome does, or says why no Chrome takes it.
func asChrome(c state.Cookie, lost *losses) (_ state.Cookie, why string) {
	domain, narrowed, ok := state.CookieDomain(c.Domain)
	if !ok {
		return c, "its domain is no host name"
	}
	if c.Domain = domain; narrowed {
		lost.add(domainAttribute, c.Origin(), 1, "nothing can be below this domain: the cookie is of the host alone")
	}
	if c.Path, ok = cookiePath(c.Path); !ok {
		return c, "its path has steps (/../) or a backslash"
	}
	if c.Partition != nil && c.Partition.TopLevelSite == "" {
		c.Partition = nil
	}
	if c.Partition != nil {
		site := state.Site(c.Partition.TopLevelSite)
		if site == "" {
			return c, "its partition is no site"
		}
		c.Partition = &state.PartitionKey{TopLevelSite: site, HasCrossSiteAncestor: c.Partition.HasCrossSiteAncestor}
	}
	return c, c.Unsettable()
}

// cookiePath writes a path as Chrome does a URL's; ok is false for one that
// Chrome would make another of.
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
