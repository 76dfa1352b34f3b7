package main

import (
	"bytes"
	"context"

	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/client"
)

// loginDaemon plays a daemon for logins of alice. Its sessions have the ID "s".
type loginDaemon struct {
	*httptest.Server
	page    string // the answer to navigate; "": the page opens
	logins  string // of the snapshot, as JSON
	check   string // the outcome of the login check; "": alice has none
	outcome string // of a session that ended elsewhere; "": it lives

	mu    sync.Mutex
	calls []string // method and path, except reads
}

const savedOnce = `{"id":"snap-2","logins":%s,"components":[{"name":"cookies","origin":"www.example.com","saved":3,"dropped":1},{"name":"local_storage","origin":"https://example.com/","saved":4}]}`

func startLoginDaemon(t *testing.T) *loginDaemon {
	d := &loginDaemon{logins: `[{"site":"example.com","expected_end":null,"expired":false}]`}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			d.mu.Lock()
			d.calls = append(d.calls, r.Method+" "+r.URL.RequestURI())
			d.mu.Unlock()
		}
		refuse := func(status int, body string) {
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, body)
		}
		switch r.Method + " " + r.URL.Path {
		case "GET /v1/me":
			_, _ = fmt.Fprint(w, `{"user_id":"alice"}`)
		case "GET /v1/users/alice/default":
			_, _ = fmt.Fprint(w, `{"version":1,"snapshot_id":"snap-1"}`)
		case "POST /v1/sessions":
			_, _ = fmt.Fprintf(w, `{"session_id":"s","agent_url":"%s/v1/sessions/s/live?ticket=secret"}`, d.URL)
		case "GET /v1/sessions/s":
			if d.outcome == "" {
				_, _ = fmt.Fprint(w, `{"status":"ready","ended_at":null}`)
				return
			}
			_, _ = fmt.Fprintf(w, `{"status":"completed","reason":"for a test","ended_at":"2026-11-24T00:00:00Z","outcome":%s}`, d.outcome)
		case "POST /v1/sessions/s/navigate":
			if d.page != "" {
				refuse(http.StatusBadGateway, d.page)
				return
			}
			_, _ = fmt.Fprint(w, `{"current_url":"https://example.com/"}`)
		case "DELETE /v1/sessions/s":
			moved := "null"
			if r.URL.Query().Get("save_as_default") == "true" {
				moved = `{"moved":true,"version":2}`
			}
			_, _ = fmt.Fprintf(w, `{"success":true,"snapshot":`+savedOnce+`,"default":%s}`, d.logins, moved)
		case "POST /v1/users/alice/default/check":
			if d.check == "" {
				refuse(http.StatusConflict, `{"code":"no_login_check","message":"none"}`)
				return
			}
			_, _ = fmt.Fprint(w, d.check)
		default:
			refuse(http.StatusNotFound, `{"code":"not_found","message":"no such route"}`)
		}
	}))
	t.Cleanup(d.Close)
	return d
}

// did returns the calls of the command since the session began.
func (d *loginDaemon) did() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.calls, "\n")
}

// login runs the command for a person who does these deeds. Each is received before the
// next.
func (d *loginDaemon) login(t *testing.T, terminal bool, c loginCmd, deeds ...deed) (out string, err error) {
	t.Helper()
	c.remoteDaemon = remoteDaemon{URL: d.URL, Key: "k"}
	if c.Site == "" {
		c.Site = "example.com/login"
	}
	l, err := c.prepare(t.Context())
	if err != nil {
		return "", err
	}
	var said bytes.Buffer
	l.period = time.Millisecond
	l.person = &person{did: make(chan deed), terminal: terminal, out: &said}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for _, x := range deeds {
			select {
			case l.did <- x:
			case <-ctx.Done():
				return
			}
		}
	}()
	err = l.run(ctx)
	return said.String(), err
}

var (
	enter   = deed{kind: typed, line: "\n"}
	ctrlC   = deed{kind: interrupt}
	ctrlD   = deed{kind: inputEnded}
	sigterm = deed{kind: termination}
	yes     = deed{kind: typed, line: "Y\n"}
)

const (
	discarded = "DELETE /v1/sessions/s"
	saved     = discarded + "?save_snapshot_mode=filesystem"
	moved     = discarded + "?default_conflict=overwrite&save_as_default=true&save_snapshot_mode=filesystem"
	noLogins  = `[]`
	notFound  = `{"code":"browser_failed","message":"the page could not be opened: net::ERR_NAME_NOT_RESOLVED"}`
	elsewhere = `{"code":"browser_failed","message":"the page could not be opened: net::ERR_ABORTED"}`
	noHTTPS   = `{"code":"browser_failed","message":"the page could not be opened: net::ERR_SSL_PROTOCOL_ERROR"}`
	loggedOut = `{"logged_in":false,"url":"https://example.com/account","conditions":[{"kind":"selector","held":false},{"kind":"status","held":true}]}`
)

// What the person does decides what becomes of the session: it is saved as the default only
// after Enter, and without a doubt or in spite of it.
func TestLoginByHand(t *testing.T) {
	for name, x := range map[string]struct {
		page, logins, check string
		piped               bool
		cmd                 loginCmd
		deeds               []deed
		code                int
		calls               string // the last of them
		says                []string
		never               string
	}{
		"saved": {deeds: []deed{enter}, calls: saved + "\n" + moved,
			says: []string{"/v1/sessions/s/live?ticket=secret#login\n", `or choose "Save as default" in the live view`, "Saved as version 2 of the default of alice.", "example.com: end unknown; saved cookies 2, local_storage 4"}},
		"checked":    {check: `{"logged_in":true}`, deeds: []deed{enter}, says: []string{"Login check: logged in."}},
		"logged out": {check: loggedOut, deeds: []deed{enter}, code: exitFailed, says: []string{"selector does not hold at https://example.com/account", `to go back to version 1: PUT /v1/users/alice/default with {"snapshot_id": "snap-1"}`}},
		"elsewhere":  {cmd: loginCmd{Site: "other.org"}, deeds: []deed{enter}, says: []string{"No login was recognised at other.org itself."}},

		"discarded":              {deeds: []deed{ctrlC, yes}, code: exitInterrupted, calls: discarded, says: []string{"Discard the login? [y/N]", "nothing was saved"}},
		"a second Ctrl-C":        {deeds: []deed{ctrlC, ctrlC}, code: exitInterrupted, calls: discarded},
		"Ctrl-D":                 {deeds: []deed{ctrlD, yes}, code: exitInterrupted, calls: discarded},
		"not discarded":          {deeds: []deed{ctrlC, enter, enter}, calls: saved + "\n" + moved},
		"a signal":               {deeds: []deed{sigterm}, code: exitInterrupted, calls: discarded},
		"Ctrl-C, no terminal":    {piped: true, deeds: []deed{ctrlC}, code: exitInterrupted, calls: discarded},
		"the input ended":        {piped: true, deeds: []deed{ctrlD}, code: exitFailed, calls: discarded, says: []string{"the input ended"}},
		"nothing, no":            {logins: noLogins, deeds: []deed{enter, enter}, code: exitFailed, calls: saved, says: []string{"No login was recognised", "anyway? [y/N]", "no login was recognised", `PUT /v1/users/alice/default with {"snapshot_id": "snap-2"}`}},
		"nothing, yes":           {logins: noLogins, deeds: []deed{enter, yes}, calls: saved + "\n" + moved, says: []string{"Saved as version 2"}},
		"nothing, no terminal":   {logins: noLogins, piped: true, deeds: []deed{enter}, code: exitFailed, calls: saved, says: []string{"--save-anyway", "PUT /v1/users/alice/default"}},
		"nothing, anyway":        {logins: noLogins, piped: true, cmd: loginCmd{SaveAnyway: true}, deeds: []deed{enter}, calls: saved + "\n" + moved},
		"page left early":        {page: elsewhere, deeds: []deed{enter}, calls: saved + "\n" + moved, never: "could not be opened"},
		"no page, no":            {page: notFound, deeds: []deed{enter, ctrlC}, code: exitFailed, calls: saved, says: []string{"The page https://example.com/login could not be opened: net::ERR_NAME_NOT_RESOLVED"}},
		"no page, no terminal":   {page: notFound, piped: true, deeds: []deed{enter}, code: exitFailed, calls: saved, says: []string{"ERR_NAME_NOT_RESOLVED; the session was saved", "--save-anyway"}},
		"no https":               {page: noHTTPS, deeds: []deed{enter, yes}, calls: saved + "\n" + moved, says: []string{"Then open http://example.com/login there."}},
		"https as given":         {page: noHTTPS, cmd: loginCmd{Site: "https://example.com/"}, deeds: []deed{enter, yes}, calls: saved + "\n" + moved, never: "Then open"},
		"a slow page":            {page: `{"code":"timeout","message":"x"}`, deeds: []deed{enter}, calls: saved + "\n" + moved, says: []string{"example.com has not answered yet."}},
		"a page that is refused": {page: `{"code":"unsupported","message":"url: sessions may not open this address"}`, code: exitUsage, calls: discarded, says: []string{"SITE: sessions may not open this address"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := startLoginDaemon(t)
			d.page, d.check = x.page, x.check
			if x.logins != "" {
				d.logins = x.logins
			}
			out, err := d.login(t, !x.piped, x.cmd, x.deeds...)
			if code := report(err); code != x.code || !strings.HasSuffix(d.did(), x.calls) && !strings.Contains(d.did(), x.calls+"\nPOST /v1/users/alice/default/check") {
				t.Errorf("%d %v\n%s", code, err, d.did())
			}
			if err != nil {
				out += err.Error()
			}
			for _, part := range x.says {
				if !strings.Contains(out, part) {
					t.Errorf("%q is not in:\n%s", part, out)
				}
			}
			if x.never != "" && strings.Contains(out, x.never) {
				t.Errorf("%q is in:\n%s", x.never, out)
			}
		})
	}
}

// A session that ends elsewhere ends the command, with 0 only if it was saved as the default.
func TestLoginEndsElsewhere(t *testing.T) {
	const login = `[{"site":"example.com","expected_end":null,"expired":false}]`
	for _, x := range []struct {
		outcome string
		code    int
		says    string
		deeds   []deed
	}{
		{`{"snapshot":` + fmt.Sprintf(savedOnce, login) + `,"default":{"moved":true,"version":7}}`, exitOK, "Saved as version 7 of the default of alice.\n  example.com: end unknown; saved cookies 2, local_storage 4\n", nil},
		{`{"snapshot":` + fmt.Sprintf(savedOnce, login) + `,"default":{"moved":true,"version":7}}`, exitOK, "Saved as version 7", []deed{enter}}, // before the command sees it
		{`{"code":"version_conflict","snapshot":` + fmt.Sprintf(savedOnce, noLogins) + `,"default":{"moved":false,"version":7}}`, exitFailed, `choose "Overwrite" in the live view`, nil},
		{`{"snapshot":` + fmt.Sprintf(savedOnce, noLogins) + `,"default":null}`, exitFailed, `completed, for a test; the session was saved as snapshot snap-2`, nil},
		{`{"snapshot":null}`, exitFailed, "for a test; nothing was saved", nil},
	} {
		d := startLoginDaemon(t)
		d.outcome = x.outcome
		out, err := d.login(t, true, loginCmd{}, x.deeds...)
		if code := report(err); code != x.code || !strings.Contains(fmt.Sprint(out, err), x.says) || strings.Contains(d.did(), discarded) {
			t.Errorf("%s: %d %v\n%s\n%s", x.outcome, code, err, out, d.did())
		}
	}
}

// The errors of arguments name the arguments, and a bare name is an https address, but not on this machine.
func TestLoginArguments(t *testing.T) {
	for site, want := range map[string]string{
		"example.com": "https://example.com", "localhost:8000/in": "http://localhost:8000/in", "127.0.0.1": "http://127.0.0.1", "[::1]:80/": "http://[::1]:80/", "localhost.example": "https://localhost.example", "127.0.0.1.example/": "https://127.0.0.1.example/", "HTTP://a.example/?q=1": "http://a.example/?q=1",
		"file:///etc/passwd": "", "about:blank": "", "javascript:alert(1)": "", "http://": "", "": "",
	} {
		at, err := siteAddress(site)
		if want == "" {
			if report(err) != exitUsage || !strings.HasPrefix(err.Error(), "SITE: ") {
				t.Errorf("%q: %v", site, err)
			}
		} else if err != nil || at.String() != want {
			t.Errorf("%q: %v %v", site, at, err)
		}
	}
	for field, argument := range map[string]string{"start_url": "SITE", "user_id": "--user", "max_lifetime_seconds": "--timeout"} {
		if err := namesArgument(&client.Error{Code: "invalid_field", Message: field + ": is wrong"}); report(err) != exitUsage || err.Error() != argument+": is wrong" {
			t.Errorf("%s: %v", field, err)
		}
	}
	other := &client.Error{Code: "too_many_sessions", Message: "no slot"}
	if err := namesArgument(other); !errors.Is(err, other) {
		t.Error(err)
	}
	d := startLoginDaemon(t)
	if _, err := d.login(t, true, loginCmd{Timeout: -time.Second}); report(err) != exitUsage || d.did() != "" {
		t.Error(err, d.did())
	}
	if _, err := d.login(t, true, loginCmd{Timeout: 200 * time.Hour}); report(err) != exitUsage || err.Error() != "--timeout: must be at most 168h" || d.did() != "" {
		t.Error(err, d.did())
	}
}

// The link reaches the browser in a file that only this user can read, and in no argument. The
// file is removed afterwards.
func TestOpenLink(t *testing.T) {
	bin, out := t.TempDir(), filepath.Join(t.TempDir(), "opened")
	script := "#!/bin/sh\n{ echo \"$# $STASIS_API_KEY\"; ls -ld \"$(dirname \"$1\")\" \"$1\"; cat \"$1\"; } >" + out + ".part; mv " + out + ".part " + out + "\n"
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("STASIS_API_KEY", "not for browsers")
	closed, err := openLink(t.Context(), `http://a/live?ticket="1"&x`)
	if err != nil || closed == nil {
		t.Fatal(err)
	}
	var raw []byte
	for raw, err = os.ReadFile(out); err != nil; raw, err = os.ReadFile(out) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal(err)
		}
	}
	for _, part := range []string{"1 \n", "drwx------", "\n-rw-------", `content="0;url=http://a/live?ticket=&#34;1&#34;&amp;x"`} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("%q is not in\n%s", part, raw)
		}
	}
	closed()
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	t.Setenv("PATH", t.TempDir())
	if closed, err := openLink(t.Context(), "http://a/"); closed != nil || err != nil {
		t.Errorf("without xdg-open: %v", err)
	}
}
