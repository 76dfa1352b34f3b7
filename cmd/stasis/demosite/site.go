// Package demosite is a web site that stores state in every place that a browser has, and
// later reports what is still there. `stasis demo` visits it, and so do the end-to-end
// tests (e2e/apps/probe).
//
// /set?v=V writes V everywhere; then its title is "set". /check reads it back. Its first
// script records in window.__first what is there before anything else runs. Then every kind
// is read into window.__state, where a kind that survived has the value V, and the title
// becomes "checked". With frame=1 both pages first do the same in a cross-site frame
// (window.__state.frame).
//
// /login and /me are a login that consists of a cookie and a record on the server. It is a
// session cookie unless the form has remember.
//
// The site is served under two origins that are cross-site to each other, 127.0.0.1 and
// localhost. Browsers treat both as secure contexts.
package demosite

import (
	"embed"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// The one account of the site.
const (
	User     = "demo"
	Password = "demo-pass"
)

//go:embed pages
var pages embed.FS

// Site is a running site.
type Site struct {
	URL   string // origin of the site, by address
	Other string // origin of the same site, by name: cross-site to URL

	server *http.Server
	served chan error // what Serve returned

	mu     sync.Mutex
	logins map[string]string // session cookie → account

	closing  sync.Once
	closeErr error
}

// Start serves the site on a free loopback port until Close. wrap wraps the handler, for
// example with a request log; nil: nothing is wrapped.
func Start(wrap func(http.Handler) http.Handler) (*Site, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	s := &Site{
		URL:    "http://127.0.0.1:" + port,
		Other:  "http://localhost:" + port,
		served: make(chan error, 1),
		logins: map[string]string{},
	}
	handler := s.routes()
	if wrap != nil {
		handler = wrap(handler)
	}
	s.server = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	go func() { s.served <- s.server.Serve(listener) }()
	return s, nil
}

// Close stops the site and waits until it no longer listens. Later calls return the result
// of the first one.
func (s *Site) Close() error {
	s.closing.Do(func() {
		s.closeErr = s.server.Close()
		if err := <-s.served; !errors.Is(err, http.ErrServerClosed) {
			s.closeErr = errors.Join(s.closeErr, err)
		}
	})
	return s.closeErr
}
