package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// enginesOfExamples returns the engines in which the pages' examples run: the long form uses both.
func enginesOfExamples() []string {
	if storetest.Long() {
		return []string{browser.EngineShell, browser.EngineChrome}
	}
	return []string{browser.EngineShell}
}

// The examples of docs/python.md run as one script, with the client that they show. What
// they print is what the page says.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	site, logins := loginSite(t)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	script := strings.NewReplacer("http://127.0.0.1:8090/", site).Replace(strings.Join(examples(t, "../docs/python.md", "python"), "\n"))
	for i, engine := range enginesOfExamples() {
		user, guest := "ada "+engine, "grace "+engine
		d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/"+user, body{"engine": engine})
		d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/default", body{"engine": engine})
		dir := t.TempDir()
		out := python(t, d, dir, "-c", strings.NewReplacer(`"ada"`, `"`+user+`"`, `"grace"`, `"`+guest+`"`).Replace(script))
		form := regexp.MustCompile(`^Hello, Ada, you are logged in
True
Hello, Ada, you are logged in
\w+ \[\]
True
2 \S+ \S+
1 \S+ \S+
3
(\S+ True
)+\[[^\n]*\]
True sid
http://127\.0\.0\.1:\d+/
\['cv.txt'\] b'a CV'
http://127\.0\.0\.1:\d+/v1/sessions/\S+/live\?ticket=\S+
404 session_not_found no such session\S* .*\S
200
True
$`)
		if !form.MatchString(out) {
			t.Errorf("%s: the page's examples print:\n%s", engine, out)
		}
		if n := logins.Load(); n != int64(i+1) {
			t.Errorf("%s: the site saw %d logins", engine, n)
		}
		if info, err := os.Stat(filepath.Join(dir, "ada.tar.zst")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the exported archive: %v %v", info, err)
		}
		for _, who := range []string{user, guest} {
			used := create(t, d, body{"restore_default_environment_from_user_id": who, "engine": engine})
			if raw := drive(t, chromeDP, used.CDP, visit(site), evaluate("document.title")); text(t, raw[len(raw)-1]) != "Welcome" {
				t.Errorf("%s: the default of %s is not logged in", engine, who)
			}
			d.Must(t, http.StatusOK, http.MethodDelete, "/v1/sessions/"+used.ID, nil)
		}
	}
	pythonErrors(t, d)
	nothingLeft(t, d)
}

// pythonErrors makes calls that fail: what they raise is in docs/python.md.
func pythonErrors(t *testing.T, d *daemon.Daemon) {
	t.Helper()
	const script = `
import sys
from cdp import CDP, CDPError, HandshakeError, WebSocketClosed
from stasis import Stasis, StasisError

stasis = Stasis()

def error(kind, call, *words):
    try:
        call()
    except kind as e:
        assert all(str(word) in str(e) or word in (getattr(e, 'code', 0), getattr(e, 'status', 0)) for word in words), repr(e)
        return e
    raise AssertionError(words)

error(StasisError, lambda: stasis.create(viewprt={}), 422, 'unknown_field', 'viewport')
error(StasisError, lambda: Stasis(key='wrong').get('x'), 401, 'unauthorized')
error(StasisError, lambda: stasis.default('nobody'), 404, 'default_not_found')

with stasis.session(user='conflict', save='filesystem'):
    pass
one, two = (stasis.create(restore_default_environment_from_user_id='conflict', engine='shell') for _ in range(2))
assert two.end('filesystem', as_default=True)['default']['moved']
e = error(StasisError, lambda: one.end('filesystem', as_default=True), 409, 'version_conflict')
assert e.answer['snapshot']['id'] and e.request_id
assert one.end('filesystem', as_default=True, overwrite=True)['default'] == {'moved': True, 'version': 3}
error(LookupError, lambda: stasis.rollback('conflict', 9), 'version 9')
error(StasisError, lambda: stasis.check_login('conflict'), 409, 'no_login_check')

s = stasis.create(engine='shell')
chrome = CDP(s.cdp_url)
page = chrome.page()
error(CDPError, lambda: page.navigate('file:///etc/passwd'), 'file: addresses')
error(CDPError, lambda: page.navigate('http://127.0.0.1:1/'), 'ERR_')
error(CDPError, lambda: page.evaluate('missing.name'), 'ReferenceError')
error(LookupError, lambda: chrome.page('https://nowhere.example/'), 'nowhere')
error(TimeoutError, lambda: page.wait_for('false', timeout=0.1), 'false')
text = 'x' * (12 << 20)
assert page.evaluate(repr(text)) == text  # a message of many MiB in both directions
listed = [t.id for t in stasis.sessions(status='running')]
assert listed == [s.id], listed
ticket = s.cdp_url
assert s.screenshot()[:3] == b'\xff\xd8\xff'
s.pause()
s.resume()
s.end()
e = error(WebSocketClosed, lambda: chrome.call('Browser.getVersion'), 4001)
assert e.reason == 'session_ended', e.reason
chrome.close()
error(HandshakeError, lambda: CDP(ticket), 401, 'unauthorized')
print('done')
`
	if out := python(t, d, t.TempDir(), "-c", script); out != "done\n" {
		t.Error(out)
	}
}

// The Python clients need nothing that Python 3.9 lacks in its grammar, and their own
// tests pass.
func TestPythonFiles(t *testing.T) {
	t.Parallel()
	const grammar = `
import ast
for name in "stasis.py", "cdp.py":
    ast.parse(open(name).read(), feature_version=(3, 9))
`
	for _, args := range [][]string{{"-c", grammar}, {"-m", "unittest"}} {
		cmd := exec.CommandContext(t.Context(), "python3", args...) //nolint:gosec // the project's own files
		cmd.Dir = "../clients/python"
		cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// python runs Python in a folder, with the clients and the daemon's address and key. It
// returns what it prints.
func python(t *testing.T, d *daemon.Daemon, dir string, args ...string) string {
	t.Helper()
	path, err := filepath.Abs("../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", args...) //nolint:gosec // the project's own page
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONPATH="+path, "PYTHONDONTWRITEBYTECODE=1", "STASIS_URL="+d.URL, "STASIS_API_KEY="+daemon.Key)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// examples returns the blocks of code of a page in one language, without those that begin
// with "not run".
func examples(t *testing.T, page, language string) []string {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var run []string
	for _, block := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(raw), -1) {
		if !strings.HasPrefix(strings.TrimLeft(block[1], "#/ "), "not run:") {
			run = append(run, block[1])
		}
	}
	if len(run) < 2 {
		t.Fatalf("%s has %d examples in %s", page, len(run), language)
	}
	return run
}

// loginSite is the site of examples/quickstart. It also counts logins.
func loginSite(t *testing.T) (url string, logins *atomic.Int64) {
	t.Helper()
	logins = new(atomic.Int64)
	const form = `<title>Log in</title><form method="post"><label>User <input name="user"></label>
		<label>Password <input name="password" type="password"></label><button>Log in</button></form>`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if r.FormValue("user") == "" || r.FormValue("password") != "a secret" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			logins.Add(1)
			http.SetCookie(w, &http.Cookie{Name: "sid", Value: "42", HttpOnly: true})
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		page := form
		if c, err := r.Cookie("sid"); err == nil && c.Value == "42" {
			page = "<title>Welcome</title><h1>Hello, Ada, you are logged in</h1>"
		}
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/", logins
}
