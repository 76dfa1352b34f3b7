package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
	"github.com/stasisd/stasis/snapshot/storetest"
)

// A person uses the live view in a real browser: types accents, a composition and an emoji,
// chooses from lists, copies, scrolls, opens and closes tabs, navigates, taps on a phone, shares a
// link and saves. A second viewer looks on and cannot do anything. See clients/live.mjs. The
// short form views a session of the shell, as TestLoginByHand and TestConsole view Chrome's.
func TestLiveView(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if r.URL.Path == "/login" {
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "6d8c1f0a9b3e47d2", MaxAge: 3600, HttpOnly: true})
		}
		if c, err := r.Cookie("session"); err == nil {
			_, _ = fmt.Fprintf(w, "<title>welcome back %s</title>", c.Value)
			return
		}
		if r.URL.Path == "/two" {
			_, _ = fmt.Fprint(w, "<title>two</title>two")
			return
		}
		_, _ = fmt.Fprint(w, `<title>&lt;img src=x onerror=alert(1)></title><body style="margin:0;height:3000px">
			<input id=selected style="position:absolute;left:50px;top:50px;width:400px;height:20px">
			<select id=look name=looked style="position:absolute;left:50px;top:100px"><option>red<option>green</select>
			<a href="/two" target="_blank" style="position:absolute;left:50px;top:150px">a new tab</a>`)
	}))
	t.Cleanup(site.Close)
	d := daemon.Start(t, daemon.Options{Args: []string{"--spares", "0"}})
	t.Run("stasis login", func(t *testing.T) { loginByHand(t, d, site.URL) })
	engines := []string{"shell"}
	if storetest.Long() {
		engines = []string{"chrome", "shell"}
	}
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			s := begin(t, d, obj{"engine": engine, "start_url": site.URL + "/", "viewport": obj{"width": 1024, "height": 768}})
			links := linksOf(t, d, daemon.Key, s.ID)
			hostileViewers(t, d, links)
			in, err := json.Marshal(obj{"control": links.Control, "view": links.Live, "cdp": s.CDP, "site": site.URL, "timeout_ms": stepDeadline.Milliseconds()})
			if err != nil {
				t.Fatal(err)
			}
			node(t, in, "clients/live.mjs")
		})
	}
}

// hostileViewers checks that what is no command ends a viewer's connection, and that a
// page of another origin gets none.
func hostileViewers(t *testing.T, d *daemon.Daemon, links looks) {
	t.Helper()
	url := socketOf(links.Control)
	for _, command := range []string{`{`, `[]`, `{"type":"Page.navigate"}`, `{"type":"mouse","event":"drag"}`, `{"type":"mouse","event":"move","x":1e300}`,
		`{"type":"key","event":"down","key":"` + strings.Repeat("k", 100) + `"}`} {
		w := dial(t, url)
		w.send([]byte(command))
		<-w.closed
	}
	if got := refusedUpgrade(t, url, http.Header{"Origin": {"https://evil.example"}}); got != 403 {
		t.Errorf("from another origin = %d", got)
	}
	w := dial(t, url)
	w.send([]byte(`{"type":"drawn","frame":-1}`)) // a picture that was never sent is ignored
	w.close()
}

// loginByHand runs stasis login: a person opens the address that it prints, logs in and
// presses Enter. A session from the default is then logged in. Nothing is saved if the
// input ends first.
func loginByHand(t *testing.T, d *daemon.Daemon, site string) {
	login := func() (in io.WriteCloser, lines *bufio.Scanner, cmd *exec.Cmd) {
		cmd = exec.CommandContext(t.Context(), daemon.Binary(t), "login", "--url", d.URL, "--key", daemon.Key, "--user", "hand", site+"/")
		out, err := cmd.StdoutPipe()
		if err == nil {
			in, err = cmd.StdinPipe()
		}
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return in, bufio.NewScanner(out), cmd
	}
	in, _, cmd := login()
	_ = in.Close()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the input ended: %v", err)
	}
	d.Must(t, http.StatusNotFound, http.MethodGet, "/v1/users/hand/default", nil)

	in, lines, cmd := login()
	page := ""
	for page == "" && lines.Scan() {
		if strings.Contains(lines.Text(), "/live?") {
			page = strings.TrimSuffix(strings.TrimSpace(lines.Text()), "#login")
		}
	}
	_, id, _ := strings.Cut(strings.TrimSuffix(page, "/live?ticket="+ticketIn(page)), "/v1/sessions/")
	w := dial(t, socketOf(page))
	shows := func(url string) {
		daemon.Eventually(t, grace, "the page "+url, func() bool {
			var shot struct{ URL string }
			d.Must(t, http.StatusOK, http.MethodGet, at(id, "/screenshot"), nil).Into(t, &shot)
			return shot.URL == url
		})
	}
	shows(site + "/") // a navigation before it would be aborted by it
	w.send([]byte(`{"type":"navigate","url":"` + site + `/login"}`))
	shows(site + "/login")
	if _, err := io.WriteString(in, "\n"); err != nil {
		t.Fatal(err)
	}
	said := ""
	for lines.Scan() {
		said += lines.Text() + "\n"
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(said, "Saved as version 1 of the default of hand.") || !strings.Contains(said, "127.0.0.1: until about") {
		t.Errorf("%v\n%s", err, said)
	}
	s := begin(t, d, obj{"restore_default_environment_from_user_id": "hand", "start_url": site + "/two"})
	daemon.Eventually(t, grace, "the restored login", func() bool {
		var shot struct{ URL, Title string }
		d.Must(t, http.StatusOK, http.MethodGet, at(s.ID, "/screenshot"), nil).Into(t, &shot)
		return shot.URL == site+"/two" && shot.Title == "welcome back 6d8c1f0a9b3e47d2"
	})
	finish(t, d, s.ID, throwAway)
}

// socketOf returns the address of the WebSocket of a live view.
func socketOf(page string) string {
	return strings.Replace(strings.Replace(page, "http://", "ws://", 1), "/live?", "/live/socket?", 1)
}
