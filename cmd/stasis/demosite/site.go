// Package demosite is a web site that keeps state in every place a browser has,
// and reports later what is left of it. `stasis demo` visits it, and so do the
// end-to-end tests (e2e/apps/probe).
//
// /set?v=V writes V everywhere; the title becomes "set". /check reads it back:
// its first script records what is there before anything else runs, in
// window.__first; then every kind is read into window.__state, where a kind
// that survived holds V, and the title becomes "checked". With frame=1 either
// page does the same in a cross-site frame first (window.__state.frame).
// /login and /me are a login whose proof is a cookie and a record on the
// server's side; the cookie is a session's unless the form has remember.
//
// The site answers under two origins that are foreign to each other, 127.0.0.1
// and localhost, both of which browsers trust as if they came by TLS.
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
	Other string // origin of the same site, by name: another site to a browser

	server *http.Server
	served chan error // what Serve returned

	mu     sync.Mutex
	logins map[string]string // session cookie → account

	closing  sync.Once
	closeErr error
}

// Start serves the site on a loopback port that the system chooses, until
// Close. wrap stands before every request, as a request log does; nil: nothing does.
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

// Close ends the site and waits until it no longer listens. Only the first
// call does anything; the others give its answer.
func (s *Site) Close() error {
	s.closing.Do(func() {
		s.closeErr = s.server.Close()
		if err := <-s.served; !errors.Is(err, http.ErrServerClosed) {
			s.closeErr = errors.Join(s.closeErr, err)
		}
	})
	return s.closeErr
}
