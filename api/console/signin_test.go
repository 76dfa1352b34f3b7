package console

import (
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The cookie never has the key, and only this site's own pages send it.
func TestSignIn(t *testing.T) {
	r := newRig(t)
	r.answers["GET /v1/sessions"] = "[]"
	if answer := r.do(t, "GET", "/console/users?user_id=a%26b", ""); answer.StatusCode != 401 || !strings.Contains(answer.body, `name="next" value="/console/users?user_id=a%26b"`) {
		t.Errorf("without a login: %d %s", answer.StatusCode, answer.body)
	}
	if answer := r.do(t, "POST", "/console/sign-in", "key=wrong"); answer.StatusCode != 401 || !strings.Contains(answer.body, "This is no API key") || answer.Header.Get("Set-Cookie") != "" {
		t.Errorf("wrong key: %d %s", answer.StatusCode, answer.body)
	}
	answer := r.do(t, "POST", "/console/sign-in", "key="+goodKey+"&next=/console/users%3Fuser_id%3Da")
	cookies := answer.Cookies()
	if answer.StatusCode != 303 || answer.Header.Get("Location") != "/console/users?user_id=a" || len(cookies) != 1 {
		t.Fatalf("sign in: %d %v", answer.StatusCode, answer.Header)
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/console" || strings.Contains(c.Value, goodKey) || len(c.Value) < 26 || c.MaxAge != 12*3600 {
		t.Errorf("cookie: %+v", c)
	}
	page := r.get(t, "/console/")
	if strings.Contains(page, goodKey) || !strings.Contains(page, "$STASIS_API_KEY") {
		t.Errorf("the page has the key, or no curl: %s", page)
	}

	if answer := r.do(t, "POST", "/console/sign-in", "key="+goodKey, "X-Forwarded-Proto: https"); !answer.Cookies()[0].Secure {
		t.Errorf("under TLS: %+v", answer.Cookies()[0])
	}
	answer = r.do(t, "POST", "/console/sign-out", "")
	if answer.StatusCode != 303 || answer.Cookies()[0].MaxAge != -1 {
		t.Errorf("sign out: %d %v", answer.StatusCode, answer.Header)
	}
	answer = r.do(t, "GET", "/console/", "", "Cookie: "+cookieName+"="+c.Value)
	if answer.StatusCode != 401 && len(r.console.logins.open) != 0 {
		t.Errorf("after signing out: %d", answer.StatusCode)
	}
}

// Redirects after signing in stay in the console.
func TestSignInRedirects(t *testing.T) {
	r := newRig(t)
	for _, next := range []string{"https://evil.example/console/", "//evil.example/console/", `/\evil.example`, "/v1/sessions", "javascript:alert(1)", "", "/consoles/"} {
		answer := r.do(t, "POST", "/console/sign-in", url.Values{"key": {goodKey}, "next": {next}}.Encode())
		if answer.StatusCode != 303 || answer.Header.Get("Location") != "/console/" {
			t.Errorf("%s: %d %s", next, answer.StatusCode, answer.Header.Get("Location"))
		}
	}
}

// A login ends with its key, and after 12 hours. The oldest makes room.
func TestLoginsEnd(t *testing.T) {
	r := newRig(t)
	r.answers["GET /v1/sessions"] = "[]"
	r.signIn(t)
	r.key = "another"
	answer := r.do(t, "GET", "/console/", "")
	if answer.StatusCode != 401 || !strings.Contains(answer.body, "You are signed out") || len(answer.Cookies()) != 1 || answer.Cookies()[0].MaxAge != -1 || len(r.console.logins.open) != 0 {
		t.Errorf("deleted key: %d %v %s", answer.StatusCode, answer.Header, answer.body)
	}
	r.key = goodKey
	r.signIn(t)
	r.now = r.now.Add(12*time.Hour - 1)
	r.get(t, "/console/")
	r.now = r.now.Add(1)
	if answer := r.do(t, "GET", "/console/", ""); answer.StatusCode != 401 {
		t.Errorf("after 12 h: %d", answer.StatusCode)
	}

	first := r.console.logins.add("k", "u")
	for i := range maxLogins {
		r.now = r.now.Add(time.Millisecond)
		r.console.logins.add(strconv.Itoa(i), "u")
	}
	if len(r.console.logins.open) != maxLogins || r.console.logins.open[first] != nil {
		t.Errorf("%d logins", len(r.console.logins.open))
	}
}

// Nothing changes because of another site's page, another port of this host included.
func TestOtherSitesChangeNothing(t *testing.T) {
	r := newRig(t)
	r.answers["DELETE /v1/sessions/s-1"] = `{"success":true,"deleted":true}`
	r.signIn(t)
	for _, header := range []string{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"} {
		for _, path := range []string{"/console/sessions/s-1/end", "/console/sign-in", "/console/sign-out"} {
			if answer := r.do(t, "POST", path, "save=", header); answer.StatusCode != 403 || answer.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s %s: %d", path, header, answer.StatusCode)
			}
		}
	}
	if answer := r.do(t, "POST", "/console/sessions/s-1/end", "save=", "Sec-Fetch-Site: ", "Origin: https://evil.example"); answer.StatusCode != 403 {
		t.Errorf("another Origin: %d", answer.StatusCode)
	}
	if answer := r.do(t, "GET", "/console/sessions/s-1/end", ""); answer.StatusCode != 404 {
		t.Errorf("a GET: %d", answer.StatusCode)
	}
	if len(r.calls) != 0 {
		t.Errorf("calls: %q", r.calls)
	}
	if answer := r.do(t, "POST", "/console/sessions/s-1/end", "save=default"); answer.StatusCode != 303 || !slices.Equal(r.calls, []string{"DELETE /v1/sessions/s-1?save_snapshot_mode=filesystem&save_as_default=true"}) {
		t.Errorf("from the console: %d %q", answer.StatusCode, r.calls)
	}
}

// Every answer forbids scripts and frames. The daemon's other routes are not the console's.
func TestHeaders(t *testing.T) {
	r := newRig(t)
	for _, path := range []string{"/", "/console", "/console/", "/console/sign-in", "/console/nothing", "/console/style.css"} {
		answer := r.do(t, "GET", path, "")
		policy := answer.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script-src") || strings.Contains(policy, "unsafe") || !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%s: %s", path, policy)
		}
	}
	for path, want := range map[string]bool{"/": true, "/console": true, "/console/x": true, "/consoles": false, "/v1/sessions": false, "/metrics": false} {
		req := &http.Request{Method: "GET", URL: &url.URL{Path: path}, Header: http.Header{"Accept": {"text/html,*/*"}}}
		if got := Serves(req); got != want {
			t.Errorf("Serves(%s) = %v", path, got)
		}
	}
	if Serves(&http.Request{Method: "GET", URL: &url.URL{Path: "/"}, Header: http.Header{"Accept": {"*/*"}}}) {
		t.Error("/ for a program")
	}
}

// A page reads no body: neither its parameters nor files, which would fill the daemon's disk.
func TestPagesReadNoBody(t *testing.T) {
	r := newRig(t)
	r.answers = hostileAnswers(t)
	r.signIn(t)
	t.Setenv("TMPDIR", t.TempDir())
	get := func(path, file string) string {
		form := "--x\r\nContent-Disposition: form-data; name=user_id\r\n\r\nof-the-body\r\n" +
			"--x\r\nContent-Disposition: form-data; name=f; filename=f\r\n\r\n" + file + "\r\n--x--\r\n"
		return r.do(t, "GET", path, form, "Content-Type: multipart/form-data; boundary=x").body
	}
	for _, path := range pages() {
		if strings.Contains(get(path, "small"), "of-the-body") {
			t.Errorf("%s has a parameter of the body", path)
		}
	}
	get("/console/", strings.Repeat("f", 33<<20))
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 || err != nil {
		t.Errorf("on the disk: %v, %v", left, err)
	}
}

// A key that signs in again and again signs out its own people only.
func TestLoginsOfOneKey(t *testing.T) {
	r := newRig(t)
	other, first := r.console.logins.add("other", "u"), r.console.logins.add("k", "u")
	for range maxLogins {
		r.now = r.now.Add(time.Millisecond)
		r.console.logins.add("k", "u")
	}
	if r.console.logins.open[other] == nil || r.console.logins.open[first] != nil || len(r.console.logins.open) != maxLoginsOfKey+1 {
		t.Errorf("%d logins", len(r.console.logins.open))
	}
}

// Anybody can send the form to sign in, so the daemon reads little of it.
func TestSignInFormIsSmall(t *testing.T) {
	r := newRig(t)
	if answer := r.do(t, "POST", "/console/sign-in", "key="+goodKey+"&x="+strings.Repeat("x", maxSignIn)); answer.StatusCode != 400 || len(r.calls) != 0 {
		t.Errorf("a large form: %d", answer.StatusCode)
	}
	next := "/console/?user_id=" + strings.Repeat("%26", maxNext/3-10)
	if page := r.do(t, "GET", next, "").body; !strings.Contains(page, next) {
		t.Error("a long address is not in the form")
	}
	if page := r.do(t, "GET", next+strings.Repeat("x", 100), "").body; strings.Contains(page, "%26%26") {
		t.Error("an address that the form cannot have is in it")
	}
	if answer := r.do(t, "POST", "/console/sign-in", url.Values{"key": {goodKey}, "next": {next}}.Encode()); answer.Header.Get("Location") != next {
		t.Errorf("a long address: %d", answer.StatusCode)
	}
}
