package state

import (
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// Limits of Chromium's cookies, in bytes (net/cookies/parsed_cookie.h).
const (
	maxCookieText = 4096 // name and value together
	maxCookiePath = 1024
)

// Unsettable returns the reason why no Chrome accepts the cookie, or "". The rules are
// those of RFC 6265bis and of Chromium 156 (net/cookies/canonical_cookie.cc), and a test
// compares them with Chrome itself. It does not check the expiry.
func (c Cookie) Unsettable() string {
	switch {
	case c.Opaque:
		return "its partition has no name that can be set"
	case c.Name == "" && c.Value == "":
		return "it has neither a name nor a value"
	case strings.Contains(c.Name, "="), c.Name == "" && strings.Contains(c.Value, "="):
		return "its name contains an equals sign"
	case !cookieText(c.Name), !cookieText(c.Value):
		return "its name or value contains a semicolon or a control character, or begins or ends with a space"
	case len(c.Name)+len(c.Value) > maxCookieText:
		return "its name and value have more than 4096 bytes"
	case len(c.Path) > maxCookiePath:
		return "its path has more than 1024 bytes"
	case strings.Contains(c.Path, ";"):
		return "its path contains a semicolon"
	case c.SameSite == "None" && !c.Secure && (c.SourceScheme != "Secure" || strings.HasPrefix(c.Domain, ".")):
		return "SameSite=None without Secure"
	case c.Partition != nil && !c.Secure:
		return "it is partitioned and not Secure"
	}
	return c.brokenPrefix()
}

// SettableScheme returns the source scheme with which Chrome accepts the cookie. Pages of
// http://localhost may set Secure cookies, which Chrome stores as NonSecure.
// Storage.setCookies refuses that combination but accepts such a cookie without a scheme.
func (c Cookie) SettableScheme() string {
	if c.Secure && c.SourceScheme == "NonSecure" {
		return "Unset"
	}
	return c.SourceScheme
}

// cookieText reports whether a cookie's name or value may be s.
func cookieText(s string) bool {
	return strings.Trim(s, " ") == s && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == ';' })
}

// brokenPrefix says which promise of its name prefix a cookie breaks, or returns "". The
// value of a nameless cookie counts as its name, because servers cannot distinguish them.
func (c Cookie) brokenPrefix() string {
	name := c.Name
	if name == "" {
		name = c.Value
	}
	begins := func(prefix string) bool {
		return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
	}
	switch {
	case c.Name == "" && (begins("__Secure-") || begins("__Host-") || begins("__Http-")):
		return "it has no name, and a value that looks like one with a prefix"
	case begins("__Secure-") && !c.Secure:
		return "__Secure- without Secure"
	case begins("__Http-") && (!c.Secure || !c.HTTPOnly):
		return "__Http- without Secure and HttpOnly"
	case begins("__Host-Http-") && !c.HTTPOnly:
		return "__Host-Http- without HttpOnly"
	case begins("__Host-") && (!c.Secure || c.Path != "/" || strings.HasPrefix(c.Domain, ".")):
		return "__Host- without Secure, with a domain, or with a path other than /"
	}
	return ""
}

// CookieDomain returns a cookie's domain as Chrome writes it: lower case, ASCII. It
// removes the leading dot, and sets narrowed, if the domain cannot have subdomains: an
// address, or a public suffix such as "com" or "localhost". ok is false if the domain is
// not a host name.
func CookieDomain(domain string) (canonical string, narrowed, ok bool) {
	host, wide := strings.CutPrefix(domain, ".")
	host = strings.ToLower(host)
	if strings.ContainsFunc(host, func(r rune) bool { return r > 0x7e }) {
		ascii, err := idna.Lookup.ToASCII(host)
		if err != nil {
			return domain, false, false
		}
		host = ascii
	}
	if bare, bracketed := strings.CutPrefix(host, "["); bracketed {
		addr, err := netip.ParseAddr(strings.TrimSuffix(bare, "]"))
		return "[" + addr.String() + "]", wide, err == nil && addr.Is6() && strings.HasSuffix(bare, "]")
	}
	if host == "" || host[0] == '.' || strings.Contains(host, ":") {
		return domain, false, false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return host, wide, true
	}
	// Chrome takes a host whose last label is a number for an address.
	last := host[strings.LastIndex(strings.TrimSuffix(host, "."), ".")+1:]
	if strings.Trim(last, "0123456789.") == "" || strings.HasPrefix(last, "0x") {
		return domain, false, false
	}
	if !wide {
		return host, false, true
	}
	if suffix, _ := publicsuffix.PublicSuffix(host); suffix == host {
		return host, true, true
	}
	return "." + host, false, true
}
