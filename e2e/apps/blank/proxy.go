package blank

import (
	"fmt"
	"net/http"
)

// The site is a proxy too, and all that is behind it is itself, at two addresses
// where nothing is without it. One of them asks for credentials.
const (
	OpenURL    = "http://" + open + "/"
	GuardedURL = "http://" + guarded + "/"

	ProxyUser     = "ada"
	ProxyPassword = "a password of the proxy"

	open    = "open.localhost"
	guarded = "guarded.localhost"
)

// ProxyURL is where the proxy listens.
func (s *Site) ProxyURL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

// ProxyBypass has a browser reach the site itself without the proxy, as of
// Chrome's --proxy-bypass-list, and nothing else.
func (s *Site) ProxyBypass() string { return fmt.Sprintf("<-loopback>,*.localhost:%d", s.Port) }

// proxied is a site that is reached directly and as its own proxy.
func proxied(site http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch direct := !r.URL.IsAbs() && r.Method != http.MethodConnect; {
		case direct, r.Host == open, r.Host == guarded && authorized(r):
			site.ServeHTTP(w, r)
		case r.Host == guarded:
			w.Header().Set("Proxy-Authenticate", `Basic realm="blank"`)
			http.Error(w, "who are you?", http.StatusProxyAuthRequired)
		default:
			panic(http.ErrAbortHandler) // no answer at all, as from a host that does not exist
		}
	})
}

// authorized reports whether a request has the proxy's credentials.
func authorized(r *http.Request) bool {
	as := http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
	user, password, given := as.BasicAuth()
	return given && user == ProxyUser && password == ProxyPassword
}
