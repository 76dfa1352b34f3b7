// Package console serves the web console: pages for people, at /console/.
//
// Its handlers call the daemon's own API in the process, with the key that the person
// signed in with. So the console has the rights, the checks and the errors of the API, and no
// other way to sessions. Pages are rendered on the server and have no script. Every change is
// a POST from the console's own pages.
package console

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stasisd/stasis/client"
)

// Root is the path of the console.
const Root = "/console"

// policy is the Content-Security-Policy of every page. Pictures in runs are data: URLs.
const policy = "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// maxForm is the limit of a form, in bytes. Uploads have the limit of the API.
const maxForm = 1 << 20

//go:embed style.css
var style []byte

// Options are the parameters of a [Console].
type Options struct {
	// API answers the calls of the console.
	API http.Handler
	// Base is the path before /console and /v1 in the daemon's public URL; usually "".
	Base string
	// Origin returns the URL before /v1 at which the client of a request reaches the daemon.
	Origin func(*http.Request) url.URL
	Now    func() time.Time
}

// Console is the handler of all pages. Make one with [New].
type Console struct {
	api       http.Handler
	base      string
	origin    func(*http.Request) url.URL
	logins    *logins
	mux       *http.ServeMux
	crossing  *http.CrossOriginProtection
	templates templates
	version   string // of style.css
}

// New makes the console.
func New(o Options) *Console {
	sum := sha256.Sum256(style)
	c := &Console{
		api: o.API, base: strings.TrimSuffix(o.Base, "/"), origin: o.Origin, logins: newLogins(o.Now), mux: http.NewServeMux(),
		crossing: http.NewCrossOriginProtection(), version: hex.EncodeToString(sum[:8]),
	}
	c.templates = parseTemplates(c.at, o.Now)
	c.routes()
	return c
}

// Serves reports whether the console answers a request: every request below /console, and
// one for / from a browser's tab.
func Serves(r *http.Request) bool {
	p := r.URL.Path
	return p == Root || strings.HasPrefix(p, Root+"/") ||
		p == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// ServeHTTP answers a request that [Serves] accepts.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("Referrer-Policy", "same-origin") // "no-referrer" would also make the Origin of forms null
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	if r.URL.Path == "/" || r.URL.Path == Root {
		http.Redirect(w, r, c.at(), http.StatusFound)
		return
	}
	if err := c.crossing.Check(r); err != nil {
		(&visit{console: c, w: w, r: r}).fail(&client.Error{Status: http.StatusForbidden, Code: "forbidden", Message: "the request comes from a page of another site", RequestID: header.Get("X-Request-Id")})
		return
	}
	c.mux.ServeHTTP(w, r)
}

// at returns the path of a page of the console: its segments, escaped. Without segments it
// is the first page.
func (c *Console) at(segments ...string) string {
	if len(segments) == 0 {
		return c.base + Root + "/"
	}
	return c.base + Root + joinPath(segments...)
}

// joinPath returns a path of these segments, escaped, with a slash before each.
func joinPath(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString("/" + url.PathEscape(s))
	}
	return b.String()
}

// visit is one request of a person who is signed in, while it is answered.
type visit struct {
	console *Console
	w       http.ResponseWriter
	r       *http.Request
	login   *login  // nil: nobody is signed in
	api     *caller // calls the API with the person's key
}

// page returns the handler of a page for people who are signed in. Others get the page to
// sign in. An error of do becomes a page.
func (c *Console) page(do func(*visit) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := &visit{console: c, w: w, r: r, login: c.logins.of(r)}
		if v.login == nil {
			v.signIn(http.StatusUnauthorized, "")
			return
		}
		v.api = &caller{api: c.api, of: r, secret: v.login.secret}
		err := do(v)
		var failed *client.Error
		switch {
		case err == nil:
		case errors.As(err, &failed) && failed.Status == http.StatusUnauthorized:
			c.logins.remove(r)
			v.forgetCookie()
			v.signIn(http.StatusUnauthorized, "You are signed out, because the API key was deleted or has expired.")
		default:
			v.fail(err)
		}
	}
}

// fail answers with a page that shows an error.
func (v *visit) fail(err error) {
	var shown *client.Error
	if !errors.As(err, &shown) {
		shown = &client.Error{Status: http.StatusInternalServerError, Code: "internal", Message: err.Error(), RequestID: v.w.Header().Get("X-Request-Id")}
	}
	v.write(shown.Status, "error", page{Title: "Error", Data: shown})
}

// render answers with a page.
func (v *visit) render(name string, p page) error {
	v.write(http.StatusOK, name, p)
	return nil
}

// write writes a page with what the layout of all pages shows.
func (v *visit) write(status int, name string, p page) {
	p.Style = v.console.at("style.css") + "?v=" + v.console.version
	if v.login != nil {
		p.User, p.Notice = v.login.user, v.console.logins.takeNotice(v.login)
	}
	if v.api != nil {
		origin := v.console.origin(v.r)
		for _, call := range v.api.calls {
			p.Reads = append(p.Reads, call.curl(origin))
		}
		for i := range p.Actions {
			p.Actions[i].Curl = p.Actions[i].Call.curl(origin)
		}
	}
	var b bytes.Buffer
	if err := v.console.templates[name].ExecuteTemplate(&b, "layout", p); err != nil {
		http.Error(v.w, "the page cannot be rendered: "+err.Error(), http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = b.WriteTo(v.w) // if it fails, the person has left
}

// done redirects to a page, which shows text once, and the calls of the request as curl.
func (v *visit) done(text string, segments ...string) error {
	return v.doneAt(text, v.console.at(segments...))
}

// doneAt is done for a path with a query.
func (v *visit) doneAt(text, path string) error {
	n := &notice{Text: text}
	for _, call := range v.api.calls {
		if call.method != http.MethodGet {
			n.Curl = append(n.Curl, call.curl(v.console.origin(v.r)))
		}
	}
	v.console.logins.leaveNotice(v.login, n)
	http.Redirect(v.w, v.r, path, http.StatusSeeOther)
	return nil
}

// query returns a parameter of the address, or "". FormValue would also read the body of a
// GET, and store the files in it on the daemon's disk.
func (v *visit) query(name string) string { return v.r.URL.Query().Get(name) }

// form reads the form of a POST. The body is limited.
func (v *visit) form() (url.Values, error) {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		return nil, &client.Error{Status: http.StatusBadRequest, Code: "invalid_request", Message: "the form cannot be read: " + err.Error(), RequestID: v.w.Header().Get("X-Request-Id")}
	}
	return v.r.PostForm, nil
}

// serveStyle serves the style sheet. Its address has a version, so browsers may keep it.
func (c *Console) serveStyle(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("v") == c.version {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write(style) // if it fails, the person has left
}
