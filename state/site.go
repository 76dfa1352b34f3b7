package state

import (
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Site returns the site of an origin or URL, by which browsers partition: scheme and
// registrable domain, without a port. For "https://www.a.example:8443" it is
// "https://a.example". It is "" if there is no site.
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
