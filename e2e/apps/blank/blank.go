// Package blank is a web site that keeps nothing by itself: blank pages, for
// whoever drives a browser to run scripts in, under any name below localhost.
// Names below localhost are sites that are foreign to each other, and browsers
// trust them as if they came by TLS.
//
//	/            a page, with a frame of another name when ?frame=NAME asks for one
//	/frame       a page that runs the scripts which its parent posts to it
//	/form        a tall page with a form
//	/plain       a page without scripts, with a frame of another name that has none either when ?frame=NAME asks for one
//	/text, /xml, /image
//	             documents that are no pages
//	/cookie      sets the cookie of the Set-Cookie line ?set=
//	/sent        the names and values of the cookies that came along, as JSON
//	/agent       the request's headers of interest, as JSON
//	/worker.js   a service worker that alone answers /offline/
//	/opaque.js   a script for other sites to load
//
// It is a proxy to itself as well, at addresses that nobody else knows.
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
	served chan error // what Serve returned

	closing  sync.Once
	closeErr error
}

// Start serves the site on a loopback port that the system chooses, until
// Close.
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

// Origin is the site's origin under a name below localhost: "a" is
// http://a.localhost:PORT.
func (s *Site) Origin(name string) string {
	return "http://" + name + ".localhost:" + strconv.Itoa(s.Port)
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

// documents are those that are no pages, by path.
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
			_ = view.ExecuteTemplate(w, name, frame(r)) // it fails only when the browser has gone
		})
	}
	page("/{$}", "page.html")
	page("/frame", "frame.html")
	page("/form", "form.html")
	page("/plain", "plain.html")
	for path, is := range documents {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", is.kind)
			_, _ = io.WriteString(w, is.text) // it fails only when the browser has gone
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
			_ = json.NewEncoder(w).Encode(what(r)) // it fails only when the browser has gone
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

// frame is the address of the frame that a page is to have, "" for none: it
// has the page's port, and another name.
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
