package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stasisd/stasis/e2e/daemon"
)

// A person logs in in the desktop's own Chrome, which has no flag that a page could notice,
// and closes the window. A session from the default is then logged in: with the cookie that
// lasts, and with the one that ends with the browser. Nothing is left on the desktop.
func TestLoginLocal(t *testing.T) {
	t.Parallel()
	var automated atomic.Bool
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/login":
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "6d8c1f0a9b3e47d2", Path: "/", MaxAge: 3600, HttpOnly: true})
			http.SetCookie(w, &http.Cookie{Name: "auth_token", Value: "b41f77", Path: "/", HttpOnly: true})
			_, _ = fmt.Fprint(w, `<script>fetch("/seen?" + navigator.webdriver).then(() => close())</script>`)
		case "/seen":
			automated.Store(r.URL.RawQuery != "false")
		default:
			lasting, err1 := r.Cookie("session")
			passing, err2 := r.Cookie("auth_token")
			if err1 == nil && err2 == nil {
				_, _ = fmt.Fprintf(w, "<title>welcome back %s %s</title>", lasting.Value, passing.Value)
			}
		}
	}))
	t.Cleanup(site.Close)
	d := daemon.Start(t, daemon.Options{NoSpares: true})
	home := daemon.DataDir(t)
	byOrdinaryUser(t, daemon.Options{Dir: home})
	temp, err := os.MkdirTemp(home, "")
	if err == nil {
		err = os.Chown(temp, unprivileged, unprivileged)
	}
	if err != nil {
		t.Fatal(err)
	}
	args := append(setpriv(unprivileged), daemon.Binary(t), "login", "--local", "--url", d.URL, "--key", daemon.Key, "--user", "local", site.URL+"/login")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+temp, "DISPLAY="+display(t, home))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, part := range []string{"Saved as version 1 of the default of local.", "127.0.0.1: until about", "cookies 2"} {
		if !strings.Contains(string(out), part) {
			t.Errorf("%q is not in:\n%s", part, out)
		}
	}
	if automated.Load() {
		t.Error("the page noticed automation")
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	s := begin(t, d, obj{"restore_default_environment_from_user_id": "local", "start_url": site.URL + "/"})
	var shot struct{ URL, Title string }
	daemon.Eventually(t, grace, "the restored login", func() bool {
		d.Must(t, http.StatusOK, http.MethodGet, at(s.ID, "/screenshot"), nil).Into(t, &shot)
		return shot.URL == site.URL+"/" && shot.Title == "welcome back 6d8c1f0a9b3e47d2 b41f77"
	})
	finish(t, d, s.ID, throwAway)
}

// display starts an X server without a screen, as the ordinary user, and returns its DISPLAY.
func display(t *testing.T, home string) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	args := append(setpriv(unprivileged), "Xvfb", "-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.ExtraFiles = append(os.Environ(), "HOME="+home), []*os.File{w}
	err = cmd.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }) // so it removes its lock
	number, err := io.ReadAll(io.LimitReader(r, 16))                              // until the server closes it
	if err != nil || len(number) == 0 {
		t.Fatalf("Xvfb: %q %v", number, err)
	}
	return ":" + strings.TrimSpace(string(number))
}
