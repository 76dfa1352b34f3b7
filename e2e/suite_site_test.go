package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// suiteSite is the site that the tests of clients/suite visit: a login with a form, lists that
// are kept on the site, and pages with dialogs, pop-ups, frames and files. Its pages are in
// clients/suite/site.
type suiteSite struct {
	*httptest.Server
	mu     sync.Mutex
	logins map[string]string          // user by the cookie's value
	lists  map[string]json.RawMessage // by ID
	polls  map[string]int             // of a job
}

func newSuiteSite(t *testing.T) *suiteSite {
	t.Helper()
	s := &suiteSite{logins: map[string]string{}, lists: map[string]json.RawMessage{}, polls: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login", s.loginPage)
	mux.HandleFunc("POST /login", s.logIn)
	mux.HandleFunc("GET /logout", s.logOut)
	mux.HandleFunc("GET /{$}", s.page("home"))
	mux.HandleFunc("GET /lists/{id}", s.page("list"))
	for _, name := range []string{"weather", "files", "dialogs", "popups", "ask", "frames", "outer", "table", "emulation"} {
		mux.HandleFunc("GET /"+name, s.page(name))
	}
	mux.HandleFunc("GET /api/me", s.api(func(w http.ResponseWriter, _ *http.Request, user string) {
		answerJSON(w, map[string]string{"user": user})
	}))
	mux.HandleFunc("POST /api/lists", s.api(s.newList))
	mux.HandleFunc("/api/lists/{id}", s.api(s.list))
	mux.HandleFunc("POST /api/jobs", s.api(func(w http.ResponseWriter, _ *http.Request, _ string) {
		answerJSON(w, map[string]string{"id": rand.Text()})
	}))
	mux.HandleFunc("GET /api/jobs/{id}", s.api(s.job))
	mux.HandleFunc("GET /api/weather", weather)
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="report.txt"`)
		_, _ = io.WriteString(w, strings.Repeat("a report\n", 1000))
	})
	mux.HandleFunc("POST /upload", receiveFiles)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *suiteSite) user(r *http.Request) string {
	c, err := r.Cookie("login")
	if err != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins[c.Value]
}

func (s *suiteSite) loginPage(w http.ResponseWriter, r *http.Request) {
	if s.user(r) != "" {
		http.Redirect(w, r, "/", http.StatusFound)
		return
	}
	show(w, "login", "")
}

func (s *suiteSite) logIn(w http.ResponseWriter, r *http.Request) {
	user := r.PostFormValue("user")
	lasts := 3600
	if user == "carl" { // a login that tests see expire
		lasts = 40
	} else if user != "ada" && user != "bob" {
		user = ""
	}
	if user == "" || r.PostFormValue("password") != "a secret" {
		show(w, "login", `<p role="alert">Wrong user or password</p>`)
		return
	}
	value := rand.Text()
	s.mu.Lock()
	s.logins[value] = user
	s.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: "login", Value: value, Path: "/", MaxAge: lasts, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusFound)
}

func (s *suiteSite) logOut(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie("login"); err == nil {
		s.mu.Lock()
		delete(s.logins, c.Value)
		s.mu.Unlock()
	}
	http.SetCookie(w, &http.Cookie{Name: "login", Path: "/", MaxAge: -1})
	http.Redirect(w, r, "/login", http.StatusFound)
}

// page shows a page to those who are logged in.
func (s *suiteSite) page(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user := s.user(r)
		if user == "" {
			http.Redirect(w, r, "/login", http.StatusFound)
			return
		}
		show(w, name, user)
	}
}

func (s *suiteSite) api(f func(w http.ResponseWriter, r *http.Request, user string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user := s.user(r)
		if user == "" {
			http.Error(w, "not logged in", http.StatusUnauthorized)
			return
		}
		f(w, r, user)
	}
}

func (s *suiteSite) newList(w http.ResponseWriter, r *http.Request, _ string) {
	var list struct{ ID string }
	if json.NewDecoder(r.Body).Decode(&list) != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[list.ID] = json.RawMessage("[]")
}

func (s *suiteSite) list(w http.ResponseWriter, r *http.Request, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("id")
	switch r.Method {
	case http.MethodPut:
		s.lists[id], _ = io.ReadAll(r.Body)
	case http.MethodDelete:
		delete(s.lists, id)
	default:
		answerJSON(w, s.lists[id])
	}
}

// job answers that it is done at the third time.
func (s *suiteSite) job(w http.ResponseWriter, r *http.Request, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.PathValue("id")
	s.polls[id]++
	state := "running"
	if s.polls[id] >= 3 {
		state = "done"
	}
	answerJSON(w, map[string]string{"state": state})
}

func weather(w http.ResponseWriter, r *http.Request) {
	is := "rain"
	if place := r.Header.Get("X-Place"); place != "" {
		is += " in " + place
	}
	answerJSON(w, map[string]string{"weather": is})
}

func receiveFiles(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseMultipartForm(1 << 20); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var received []string
	for _, h := range r.MultipartForm.File["file"] {
		f, err := h.Open()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		text, _ := io.ReadAll(f)
		received = append(received, h.Filename+": "+string(text))
	}
	show(w, "received", strings.Join(received, " "))
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// show sends a page, with a text for its {{}}. Only the login page's text is HTML.
func show(w http.ResponseWriter, name, text string) {
	page, err := os.ReadFile(filepath.Join("clients/suite/site", name+".html"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if name != "login" {
		text = html.EscapeString(text)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = fmt.Fprint(w, "<!doctype html>", strings.ReplaceAll(string(page), "{{}}", text))
}
