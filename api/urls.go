package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// origins knows under which address clients reach the daemon.
type origins struct {
	public  *url.URL // --public-url; nil: as the request says
	proxies []netip.Prefix
}

// links makes the URLs that one client is handed.
type links struct {
	base url.URL // scheme, host and perhaps a path before /v1
}

// of returns the links for the client behind a request: the public URL if one
// is set, else the request's own Host; what X-Forwarded-Proto and -Host say
// counts only when a trusted proxy sent them.
func (o origins) of(r *http.Request) links {
	if o.public != nil {
		return links{base: *o.public}
	}
	base := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		base.Scheme = "https"
	}
	if o.trusts(r.RemoteAddr) {
		// The last value is the one that the proxy next to us added.
		if proto := lastOf(r.Header.Get("X-Forwarded-Proto")); proto == "http" || proto == "https" {
			base.Scheme = proto
		}
		if host := lastOf(r.Header.Get("X-Forwarded-Host")); host != "" && !strings.ContainsAny(host, "/\\?#@ ") {
			base.Host = host
		}
	}
	return links{base: base}
}

// sameOrigin tells whether a request comes from no web page, or from one of
// the daemon's own host. The scheme is not compared: a proxy that ends TLS need
// not say so.
func (o origins) sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, o.of(r).base.Host)
}

func (o origins) trusts(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	for _, p := range o.proxies {
		if p.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

// cdp is a session's cdp_url, or one of its pages' for a targetID.
func (l links) cdp(sessionID, targetID, ticket string) string {
	path := []string{"v1", "sessions", sessionID, "cdp"}
	if targetID != "" {
		path = append(path, "page", targetID)
	}
	return l.socket().with(ticket, path...)
}

// live is a session's live view.
func (l links) live(sessionID, ticket string) string {
	return l.with(ticket, "v1", "sessions", sessionID, "live")
}

// connect is /v1/connect with a ticket in it.
func (l links) connect(ticket string) string {
	return l.socket().with(ticket, "v1", "connect")
}

func (l links) socket() links {
	l.base.Scheme = strings.Replace(l.base.Scheme, "http", "ws", 1)
	return l
}

func (l links) with(ticket string, path ...string) string {
	u := l.base.JoinPath(path...)
	u.RawQuery = url.Values{"ticket": {ticket}}.Encode()
	return u.String()
}

func lastOf(list string) string {
	parts := strings.Split(list, ",")
	return strings.TrimSpace(parts[len(parts)-1])
}
