package state

import (
	"cmp"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Selection says which origins' state is wanted. The zero value selects all. An origin is
// selected if an entry of Include matches it (or Include is empty) and no entry of
// Exclude does.
//
// An entry is one of: an origin ("https://a.example:8443", one trailing slash is
// allowed), a host with any scheme and port ("a.example"), or a host's subdomains
// together with the host ("*.a.example"). See [CheckEntry].
type Selection struct {
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
}

// All reports whether nothing is left out.
func (s Selection) All() bool { return len(s.Include) == 0 && len(s.Exclude) == 0 }

// CheckEntry returns what is wrong with an entry of a selection.
func CheckEntry(entry string) error {
	if scheme, rest, ok := strings.Cut(entry, "://"); ok {
		u, err := url.Parse(entry)
		if err != nil || scheme != "http" && scheme != "https" || strings.TrimSuffix(rest, "/") != u.Host || strings.HasSuffix(rest, ":") {
			return errEntry
		}
		if port, err := strconv.ParseUint(cmp.Or(u.Port(), "1"), 10, 16); err != nil || port == 0 {
			return errEntry
		}
		entry = u.Hostname()
	} else if strings.HasPrefix(entry, "[") && strings.HasSuffix(entry, "]") {
		entry = entry[1 : len(entry)-1]
	} else {
		entry = strings.TrimPrefix(entry, "*.")
		if strings.Contains(entry, ":") {
			return errEntry
		}
	}
	if addr, err := netip.ParseAddr(entry); err == nil && addr.Zone() == "" {
		return nil
	}
	if len(entry) > 253 {
		return errEntry
	}
	for _, label := range strings.Split(entry, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return errEntry
		}
	}
	return nil
}

var errEntry = errors.New("must be an origin (https://a.example), a host (a.example) or all below one (*.a.example), in lower case and ASCII")

// rule is a parsed entry.
type rule struct {
	origin string // "" if the entry is a host
	host   string
	below  bool // matches its subdomains too
}

func ruleOf(entry string) rule {
	if strings.Contains(entry, "://") {
		o := originOf(entry)
		return rule{origin: o, host: urlHost(o)}
	}
	host, below := strings.CutPrefix(entry, "*.")
	return rule{host: host, below: below}
}

// urlHost returns the host of an origin or URL, with brackets around an IPv6 address, or
// "".
func urlHost(of string) string {
	u, err := url.Parse(of)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host
}

// originOf returns a URL's origin, without the scheme's default port.
func originOf(of string) string {
	u, err := url.Parse(of)
	if err != nil || u.Host == "" {
		return ""
	}
	origin := u.Scheme + "://" + urlHost(of)
	if port := u.Port(); port != "" && port != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		origin += ":" + port
	}
	return origin
}

// coversHost reports whether the rule covers a host or one of the host's origins.
func (r rule) coversHost(host string) bool {
	return host == r.host || r.below && strings.HasSuffix(host, "."+r.host)
}

func (r rule) covers(origin string) bool {
	if r.origin != "" {
		return origin == r.origin
	}
	return r.coversHost(urlHost(origin))
}

// HasOrigin reports whether an origin, or the origin of a URL, is selected. Origins that
// no site can have (about:blank, an extension's page) are always selected.
func (s Selection) HasOrigin(of string) bool {
	origin := originOf(of)
	if !strings.HasPrefix(origin, "http://") && !strings.HasPrefix(origin, "https://") {
		return true
	}
	return s.has(func(r rule) bool { return r.covers(origin) }, func(r rule) bool { return r.covers(origin) })
}

// HasDomain reports whether state of a whole domain is selected: a domain cookie, or
// storage of frames below the domain's site. It is selected if a host of the domain is
// included, because that host needs it. It is left out if the domain's own host is
// excluded.
func (s Selection) HasDomain(domain string) bool {
	domain = strings.TrimPrefix(domain, ".")
	return s.has(func(r rule) bool { return r.coversHost(domain) || strings.HasSuffix(r.host, "."+domain) },
		func(r rule) bool { return r.coversHost(domain) })
}

func (s Selection) has(included, excluded func(rule) bool) bool {
	in := len(s.Include) == 0 || slices.ContainsFunc(s.Include, func(e string) bool { return included(ruleOf(e)) })
	return in && !slices.ContainsFunc(s.Exclude, func(e string) bool { return excluded(ruleOf(e)) })
}

// HasKey reports whether the storage under a key is selected. Its origin must be
// selected, and so must the top-level site of a partitioned key. A key that cannot be
// parsed is not selected.
func (s Selection) HasKey(serialised string) bool {
	key, ok := ParseStorageKey(serialised)
	if !ok {
		return !strings.HasPrefix(serialised, "http")
	}
	return s.HasOrigin(key.Origin) && (key.TopLevelSite == "" || s.HasDomain(urlHost(key.TopLevelSite)))
}

// HasCookie reports whether a cookie is selected, by its domain and partition. Cookies
// have no scheme or port. A host-only cookie belongs to its host alone.
func (s Selection) HasCookie(c Cookie) bool {
	if c.Partition != nil && !s.HasDomain(urlHost(c.Partition.TopLevelSite)) {
		return false
	}
	if strings.HasPrefix(c.Domain, ".") {
		return s.HasDomain(c.Domain)
	}
	covers := func(r rule) bool { return r.coversHost(c.Domain) }
	return s.has(covers, covers)
}

// HasPattern reports whether a content setting is selected, by its site pattern
// (Chromium's ContentSettingsPattern). A pattern for all sites is selected.
func (s Selection) HasPattern(pattern string) bool {
	scheme, rest, ok := strings.Cut(pattern, "://")
	if !ok {
		scheme, rest = "https", pattern
	}
	host, below := strings.CutPrefix(rest, "[*.]")
	if host == "*" || host == "" || scheme != "http" && scheme != "https" && scheme != "*" {
		return true
	}
	if below || !ok || scheme == "*" {
		return s.HasDomain(urlHost("https://" + strings.TrimSuffix(host, ":*")))
	}
	return s.HasOrigin(scheme + "://" + strings.TrimSuffix(host, ":*"))
}
