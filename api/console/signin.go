package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/stasisd/stasis/client"
)

// maxSignIn is the limit of the form to sign in, in bytes. Anybody can send one, so it is
// small. maxNext is the limit of the address in it, which may grow threefold by escapes.
const (
	maxSignIn = 32 << 10
	maxNext   = 8 << 10
)

// signInForm is what the page to sign in shows.
type signInForm struct {
	Error string
	Next  string // the page to show afterwards
}

// signIn answers with the page to sign in. Afterwards the person sees the page that was
// asked for.
func (v *visit) signIn(status int, problem string) {
	next := v.console.at()
	if asked := v.r.PostForm.Get("next"); v.isPage(asked) {
		next = asked
	} else if v.r.Method == http.MethodGet && !strings.HasPrefix(v.r.URL.Path, Root+"/sign-in") {
		next = v.console.base + v.r.URL.RequestURI()
	}
	if len(next) > maxNext {
		next = v.console.at()
	}
	v.login, v.api = nil, nil
	v.write(status, "signin", page{Title: "Sign in", Data: signInForm{problem, next}})
}

// isPage reports whether a path is one of the console, so that a redirect to it stays here.
func (v *visit) isPage(path string) bool {
	u, err := url.Parse(path)
	return err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && strings.HasPrefix(u.Path, v.console.at()) && !strings.Contains(path, `\`)
}

// showSignIn shows the page to sign in.
func (c *Console) showSignIn(w http.ResponseWriter, r *http.Request) {
	(&visit{console: c, w: w, r: r}).signIn(http.StatusOK, "")
}

// doSignIn checks the key of the form with the API, which limits how fast keys can be
// guessed, and sets the cookie.
func (c *Console) doSignIn(w http.ResponseWriter, r *http.Request) {
	v := &visit{console: c, w: w, r: r}
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	form, err := v.form()
	if err != nil {
		v.fail(err)
		return
	}
	key := strings.TrimSpace(form.Get("key"))
	if key == "" || strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' }) {
		v.signIn(http.StatusUnauthorized, "Enter an API key.")
		return
	}
	var me struct {
		UserID string `json:"user_id"`
	}
	_, err = (&caller{api: c.api, of: r, secret: key}).get("/v1/me", &me)
	var failed *client.Error
	switch {
	case err == nil:
	case errors.As(err, &failed) && failed.Status == http.StatusUnauthorized:
		v.signIn(http.StatusUnauthorized, "This is no API key of this daemon.")
		return
	case errors.As(err, &failed) && failed.Status == http.StatusTooManyRequests:
		v.signIn(http.StatusTooManyRequests, "Too many wrong keys came from your address. Wait some seconds and try again.")
		return
	default:
		v.fail(err)
		return
	}
	c.logins.remove(r)
	v.setCookie(c.logins.add(key, me.UserID), int(loginPeriod.Seconds()))
	next := c.at()
	if asked := form.Get("next"); v.isPage(asked) {
		next = asked
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// signOut forgets the person and the cookie.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	v := &visit{console: c, w: w, r: r}
	c.logins.remove(r)
	v.forgetCookie()
	http.Redirect(w, r, c.at("sign-in"), http.StatusSeeOther)
}

// setCookie sets the cookie of a login for some seconds.
func (v *visit) setCookie(id string, seconds int) {
	http.SetCookie(v.w, &http.Cookie{
		Name: cookieName, Value: id, Path: v.console.base + Root, MaxAge: seconds,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: v.console.origin(v.r).Scheme == "https",
	})
}

func (v *visit) forgetCookie() { v.setCookie("", -1) }
