package api

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// origins knows the address at which clients reach the daemon.
type origins struct {
	public  *url.URL // --public-url; nil: as the request says
	direct  *url.URL // --direct: that of cdp_url; nil: as public
	proxies []netip.Prefix
}

// links makes the URLs for one client.
type links struct {
	base    url.URL // scheme, host and perhaps a path before /v1
	cdpBase url.URL // that of CDP
}

// of returns the links for the client of a request: the public URL if one is set, else the
// request's own Host. X-Forwarded-Proto and -Host count only if a trusted proxy sent them. If
// another node has passed the request on, they are those of that node.
func (o origins) of(r *http.Request) links {
	base := o.baseOf(r)
	if o.direct != nil {
		return links{base, *o.direct}
	}
	return links{base, base}
}

func (o origins) baseOf(r *http.Request) url.URL {
	if base := hopBase(r); base != nil {
		return *base
	}
	if o.public != nil {
		return *o.public
	}
	base := url.URL{Scheme: "http", Host: r.Host}
	if r.TLS != nil {
		base.Scheme = "https"
	}
	if o.trusts(r.RemoteAddr) {
		// The last value is the one that the nearest proxy added.
		if proto := lastOf(r.Header.Get("X-Forwarded-Proto")); proto == "http" || proto == "https" {
			base.Scheme = proto
		}
		if host := lastOf(r.Header.Get("X-Forwarded-Host")); host != "" && !strings.ContainsAny(host, "/\\?#@ ") {
			base.Host = host
		}
	}
	return base
}

// sameOrigin reports whether a request comes from no web page, or from one of the daemon's
// own host. It does not compare the scheme, because a proxy that ends TLS need not report
// it.
func (o origins) sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, o.of(r).base.Host)
}

// trusts reports whether remote, an address with a port, is a trusted proxy's.
func (o origins) trusts(remote string) bool {
	at, err := netip.ParseAddrPort(remote)
	return err == nil && o.proxy(at.Addr())
}

func (o origins) proxy(addr netip.Addr) bool {
	for _, p := range o.proxies {
		if p.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

// client returns the address of a request's client: an IPv4 address, or the /64 of an IPv6
// address, which belongs to one customer. The zero Prefix means unknown.
func (o origins) client(r *http.Request) netip.Prefix {
	addr := o.address(r)
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	prefix, _ := addr.Prefix(bits) // fails only for an unknown address
	return prefix
}

// address returns the address of a request's client. Behind trusted proxies it is the last
// address in X-Forwarded-For that is not a proxy's. The zero Addr means unknown.
func (o origins) address(r *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := at.Addr()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && o.proxy(addr); i-- {
		before, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		addr = before
	}
	return addr.Unmap().WithZone("")
}

// cdp returns a session's cdp_url, or the URL of its page targetID.
func (l links) cdp(sessionID, targetID, ticket string) string {
	path := []string{"v1", "sessions", sessionID, "cdp"}
	if targetID != "" {
		path = append(path, "page", targetID)
	}
	l.base = l.cdpBase
	return l.socket().with(ticket, path...)
}

// live returns the URL of a session's live view.
func (l links) live(sessionID, ticket string) string {
	return l.with(ticket, "v1", "sessions", sessionID, "live")
}

// connect returns the URL of /v1/connect with a ticket.
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
