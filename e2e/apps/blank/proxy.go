package blank

import (
	"fmt"
	"net/http"
)

// The site is also a proxy. It serves itself at two addresses that exist only behind the
// proxy. One of them needs credentials.
const (
	OpenURL    = "http://" + open + "/"
	GuardedURL = "http://" + guarded + "/"

	ProxyUser     = "ada"
	ProxyPassword = "a password of the proxy"

	open    = "open.localhost"
	guarded = "guarded.localhost"
)

// ProxyURL is the proxy's address.
func (s *Site) ProxyURL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

// ProxyBypass is the value of Chrome's --proxy-bypass-list with which a browser reaches
// the site without the proxy, and everything else through it.
func (s *Site) ProxyBypass() string { return fmt.Sprintf("<-loopback>,*.localhost:%d", s.Port) }

// proxied serves a site both directly and as its own proxy.
func proxied(site http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch direct := !r.URL.IsAbs() && r.Method != http.MethodConnect; {
		case direct, r.Host == open, r.Host == guarded && authorized(r):
			site.ServeHTTP(w, r)
		case r.Host == guarded:
			w.Header().Set("Proxy-Authenticate", `Basic realm="blank"`)
			http.Error(w, "who are you?", http.StatusProxyAuthRequired)
		default:
			panic(http.ErrAbortHandler) // no answer at all, as if the host did not exist
		}
	})
}

// authorized reports whether a request has the proxy's credentials.
func authorized(r *http.Request) bool {
	as := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	user, password, given := as.BasicAuth()
	return given && user == ProxyUser && password == ProxyPassword
}
