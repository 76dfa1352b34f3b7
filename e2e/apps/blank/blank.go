// Package blank serves a web site that stores nothing: blank pages in which a CDP
// client runs scripts, under any name below localhost. To browsers, two names below
// localhost are two sites, and both are secure contexts as if they used TLS.
//
//	/            a page; with ?frame=NAME it has a frame of another name
//	/frame       a page that runs the scripts that its parent posts to it
//	/form        a tall page with a form
//	/plain       a page without scripts; with ?frame=NAME it has a frame of another name, without scripts too
//	/text, /xml, /image
//	             documents that are not HTML pages
//	/cookie      sets the cookie of the Set-Cookie line ?set=
//	/sent        the names and values of the request's cookies, as JSON
//	/agent       some of the request's headers, as JSON
//	/worker.js   a service worker that answers everything below /offline/
//	/opaque.js   a script for other sites to load
//
// The site is also a proxy to itself, at addresses that exist only behind the proxy.
package blank

import (
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

//go:embed pages
var pages embed.FS

// Site is a running site.
type Site struct {
	Port int

	server *http.Server
	served chan error // the error of Serve

	closing  sync.Once
	closeErr error
}

// Start serves the site on a free loopback port until Close.
func Start() (*Site, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Site{Port: listener.Addr().(*net.TCPAddr).Port, served: make(chan error, 1)}
	s.server = &http.Server{Handler: routes(), ReadHeaderTimeout: 10 * time.Second}
	go func() { s.served <- s.server.Serve(listener) }()
	return s, nil
}

// Origin returns the site's origin under a name below localhost: for "a" it is
// http://a.localhost:PORT.
func (s *Site) Origin(name string) string {
	return "http://" + name + ".localhost:" + strconv.Itoa(s.Port)
}

// Close stops the site and waits until it no longer listens. Later calls return the
// result of the first.
func (s *Site) Close() error {
	s.closing.Do(func() {
		s.closeErr = s.server.Close()
		if err := <-s.served; !errors.Is(err, http.ErrServerClosed) {
			s.closeErr = errors.Join(s.closeErr, err)
		}
	})
	return s.closeErr
}

// documents are the documents that are not HTML pages, by path.
var documents = map[string]struct{ kind, text string }{
	"/text":  {"text/plain", "plain"},
	"/xml":   {"text/xml", "<plain/>"},
	"/image": {"image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg"/>`},
}

func routes() http.Handler {
	view := template.Must(template.ParseFS(pages, "pages/*.html"))
	mux := http.NewServeMux()
	page := func(path, name string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_ = view.ExecuteTemplate(w, name, frame(r)) // fails only if the browser has disconnected
		})
	}
	page("/{$}", "page.html")
	page("/frame", "frame.html")
	page("/form", "form.html")
	page("/plain", "plain.html")
	for path, is := range documents {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", is.kind)
			_, _ = io.WriteString(w, is.text) // fails only if the browser has disconnected
		})
	}
	for _, script := range []string{"/worker.js", "/opaque.js"} {
		mux.HandleFunc("GET "+script, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, pages, "pages"+script)
		})
	}
	mux.HandleFunc("GET /cookie", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", r.FormValue("set"))
	})
	answer := func(path string, what func(*http.Request) map[string]string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(what(r)) // fails only if the browser has disconnected
		})
	}
	answer("/sent", func(r *http.Request) map[string]string {
		sent := map[string]string{}
		for _, c := range r.Cookies() {
			sent[c.Name] = c.Value
		}
		return sent
	})
	answer("/agent", func(r *http.Request) map[string]string {
		return map[string]string{"user_agent": r.UserAgent(), "language": r.Header.Get("Accept-Language"), "extra": r.Header.Get("X-Extra")}
	})
	return proxied(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	}))
}

// frame returns the address of a page's frame, "" for none. The frame has the page's
// port and another host name.
func frame(r *http.Request) string {
	name := r.FormValue("frame")
	_, port, err := net.SplitHostPort(r.Host)
	if name == "" || err != nil {
		return ""
	}
	path := "/frame"
	if r.URL.Path == "/plain" {
		path = "/plain"
	}
	return "http://" + name + ".localhost:" + port + path
}
