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

// Selection says which origins' state is wanted. The zero value is all of it.
// An origin is selected if an entry of Include has it (or there is none) and
// no entry of Exclude does.
//
// An entry is an origin ("https://a.example:8443"; one slash at the end does no
// harm), a host on any scheme and
// port ("a.example"), or a host with all below it ("*.a.example"); see
// [CheckEntry].
type Selection struct {
	Include []string `json:"include,omitempty"`
	Exclude []string `json:"exclude,omitempty"`
}

// All reports whether nothing is left out.
func (s Selection) All() bool { return len(s.Include) == 0 && len(s.Exclude) == 0 }

// CheckEntry says what is wrong with an entry of a selection.
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

// rule is an entry taken apart.
type rule struct {
	origin string // "" for a host's
	host   string
	below  bool // hosts below it too
}

func ruleOf(entry string) rule {
	if strings.Contains(entry, "://") {
		o := originOf(entry)
		return rule{origin: o, host: urlHost(o)}
	}
	host, below := strings.CutPrefix(entry, "*.")
	return rule{host: host, below: below}
}

// urlHost is the host of an origin or URL, an IPv6 address in brackets; "" where
// it has none.
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

// originOf is a URL's origin, without the scheme's own port.
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

// coversHost reports whether the rule speaks of a host as a whole or of an
// origin of it.
func (r rule) coversHost(host string) bool {
	return host == r.host || r.below && strings.HasSuffix(host, "."+r.host)
}

func (r rule) covers(origin string) bool {
	if r.origin != "" {
		return origin == r.origin
	}
	return r.coversHost(urlHost(origin))
}

// HasOrigin reports whether an origin, or a URL's, is selected. What no site
// can have (about:blank, an extension's page) always is.
func (s Selection) HasOrigin(of string) bool {
	origin := originOf(of)
	if !strings.HasPrefix(origin, "http://") && !strings.HasPrefix(origin, "https://") {
		return true
	}
	return s.has(func(r rule) bool { return r.covers(origin) }, func(r rule) bool { return r.covers(origin) })
}

// HasDomain reports whether what belongs to a whole domain is selected: a
// cookie of it, or what frames keep below its site. An included host of the
// domain wants it, for it would not work without; it is left out where the
// domain's own host is.
func (s Selection) HasDomain(domain string) bool {
	domain = strings.TrimPrefix(domain, ".")
	return s.has(func(r rule) bool { return r.coversHost(domain) || strings.HasSuffix(r.host, "."+domain) },
		func(r rule) bool { return r.coversHost(domain) })
}

func (s Selection) has(included, excluded func(rule) bool) bool {
	in := len(s.Include) == 0 || slices.ContainsFunc(s.Include, func(e string) bool { return included(ruleOf(e)) })
	return in && !slices.ContainsFunc(s.Exclude, func(e string) bool { return excluded(ruleOf(e)) })
}

// HasKey reports whether what lies under a storage key is selected: its origin
// is, and so is the site below which it lies. A site's storage under a key
// that cannot be taken apart is not.
func (s Selection) HasKey(serialised string) bool {
	key, ok := ParseStorageKey(serialised)
	if !ok {
		return !strings.HasPrefix(serialised, "http")
	}
	return s.HasOrigin(key.Origin) && (key.TopLevelSite == "" || s.HasDomain(urlHost(key.TopLevelSite)))
}

// HasCookie reports whether a cookie is selected, by its domain and partition:
// cookies know neither schemes nor ports. A cookie of one host alone is not
// another host's.
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

// HasPattern reports whether a content setting is selected, by the pattern of
// the sites that it is for (Chromium's ContentSettingsPattern): one for all
// sites is.
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
