package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// rotating is a site that changes its token at each visit of the account, and ends the
// login if an old token is used.
type rotating struct {
	URL string

	mu    sync.Mutex
	token int // 0 means that no user is logged in
	looks int
	holds bool // the account page does not answer
}

func newRotating(t *testing.T) *rotating {
	s := &rotating{}
	mux := http.NewServeMux()
	give := func(w http.ResponseWriter) {
		s.token++
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: fmt.Sprint(s.token), Path: "/", HttpOnly: true})
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<title>account</title><p id=in>logged in") // fails only if the browser has disconnected
	}
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		give(w)
	})
	mux.HandleFunc("GET /account", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.looks++
		if s.holds {
			s.mu.Unlock()
			<-r.Context().Done()
			return
		}
		defer s.mu.Unlock()
		if c, err := r.Cookie("sid"); err != nil || s.token == 0 || c.Value != fmt.Sprint(s.token) {
			s.token = 0
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		give(w)
	})
	mux.HandleFunc("GET /news", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<title>news</title>") // as above
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// hold makes the account page hang. forget ends the login and the hanging.
func (s *rotating) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = true
}

func (s *rotating) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token, s.holds = 0, false
}

// seen returns how often the account page was visited.
func (s *rotating) seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looks
}
