package demosite

import (
	"crypto/rand"
	"html/template"
	"net/http"
)

// Kinds returns the names of the places where /set stores its value and that /check
// reports, as in window.__state.
func Kinds() []string {
	return []string{
		"cookie_session", "cookie_persistent", "cookie_httponly", "cookie_partitioned",
		"local_storage", "session_storage", "window_name",
		"idb_value", "idb_index", "idb_map_date", "idb_blob", "idb_crypto_key",
		"cache", "service_worker", "opfs",
	}
}

const year = 365 * 24 * 60 * 60 // seconds

func (s *Site) routes() http.Handler {
	view := template.Must(template.ParseFS(pages, "pages/*.html"))
	mux := http.NewServeMux()
	page := func(path, name string, data func(http.ResponseWriter, *http.Request) any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			model := data(w, r)
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			_ = view.ExecuteTemplate(w, name, model) // it fails only if the browser has disconnected
		})
	}
	script := func(path, file string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			http.ServeFileFS(w, r, pages, "pages/"+file)
		})
	}
	page("GET /{$}", "home.html", func(http.ResponseWriter, *http.Request) any { return nil })
	page("GET /set", "set.html", func(w http.ResponseWriter, r *http.Request) any {
		setCookies(w, r.FormValue("v"))
		return map[string]string{"Value": r.FormValue("v"), "Frame": s.frame(r, "/set")}
	})
	page("GET /check", "check.html", func(_ http.ResponseWriter, r *http.Request) any {
		return map[string]any{"Sent": sent(r), "Frame": s.frame(r, "/check")}
	})
	page("GET /login", "login.html", func(http.ResponseWriter, *http.Request) any { return "" })
	page("GET /me", "me.html", func(w http.ResponseWriter, r *http.Request) any {
		user := s.user(r)
		if user == "" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return user
	})
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("POST /logout", s.logout)
	script("GET /kinds.js", "kinds.js")
	script("GET /worker.js", "worker.js")
	return mux
}

// frame returns the URL of the same page under the other origin, for a frame; "" if the
// request has no frame parameter.
func (s *Site) frame(r *http.Request, path string) string {
	if r.FormValue("frame") == "" {
		return ""
	}
	other := s.Other
	if "http://"+r.Host == s.Other {
		other = s.URL
	}
	return other + path + "?v=" + template.URLQueryEscaper(r.FormValue("v"))
}

// setCookies sets the cookies that no script can set: one that scripts may not read, and
// one that is partitioned by top-level site (CHIPS).
func setCookies(w http.ResponseWriter, value string) {
	http.SetCookie(w, &http.Cookie{
		Name: "httponly", Value: value, Path: "/", MaxAge: year, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
	http.SetCookie(w, &http.Cookie{
		Name: "partitioned", Value: value, Path: "/", MaxAge: year,
		Secure: true, HttpOnly: true, SameSite: http.SameSiteNoneMode, Partitioned: true,
	})
}

// sent maps the names of the request's cookies to their values.
func sent(r *http.Request) map[string]string {
	cookies := map[string]string{}
	for _, c := range r.Cookies() {
		cookies[c.Name] = c.Value
	}
	return cookies
}

// login opens a session for the account and sets a cookie with its ID: a session cookie, or
// a persistent one if the form asks to be remembered.
func (s *Site) login(w http.ResponseWriter, r *http.Request) {
	if r.PostFormValue("user") != User || r.PostFormValue("password") != Password {
		http.Error(w, "wrong user or password", http.StatusForbidden)
		return
	}
	id := rand.Text()
	s.mu.Lock()
	s.logins[id] = User
	s.mu.Unlock()
	age := 0
	if r.PostFormValue("remember") != "" {
		age = year
	}
	http.SetCookie(w, &http.Cookie{Name: "sid", Value: id, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/me", http.StatusSeeOther)
}

// logout deletes the session on the server. Copies of the cookie are then worthless.
func (s *Site) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie("sid"); err == nil {
		s.mu.Lock()
		delete(s.logins, c.Value)
		s.mu.Unlock()
	}
	http.Redirect(w, r, "/me", http.StatusSeeOther)
}

// user returns the account of the request's session cookie, or "".
func (s *Site) user(r *http.Request) string {
	c, err := r.Cookie("sid")
	if err != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins[c.Value]
}
