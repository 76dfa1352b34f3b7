package state

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Site is the site of an origin or URL as browsers partition by it: scheme and
// registrable domain, without a port ("https://a.example" of
// "https://www.a.example:8443"). It is "" for what has none.
func Site(of string) string {
	u, err := url.Parse(of)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Is6() {
			host = "[" + host + "]"
		}
	} else if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		host = domain
	}
	return u.Scheme + "://" + host
}
