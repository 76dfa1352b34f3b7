package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stasisd/stasis/client"
	"github.com/stasisd/stasis/e2e/daemon"
)

// The verbs of the command line do the whole loop with a running daemon, for people and with
// --json for programs.
func TestVerbs(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "b7f0a2c94d8f36e1b0a7d25c6f4e985b", Path: "/", HttpOnly: true, MaxAge: 3600})
		_, err := r.Cookie("session")
		_, _ = w.Write([]byte(map[bool]string{true: "welcome back", false: "hello"}[err == nil]))
	}))
	t.Cleanup(site.Close)
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell"}})
	// run runs a verb, and checks its exit code and parts of what it prints.
	run := func(exit int, args []string, says ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), daemon.Binary(t), args...)
		cmd.Env = append(os.Environ(), "STASIS_URL="+d.URL, "STASIS_API_KEY="+daemon.Key)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		var exited *exec.ExitError
		code := 0
		if errors.As(err, &exited) {
			code = exited.ExitCode()
		}
		if strings.Contains(stderr.String(), "stasis_") {
			t.Errorf("%s prints a key's secret on standard error:\n%s", args, &stderr)
		}
		for _, part := range says {
			if !strings.Contains(string(out)+stderr.String(), part) {
				t.Errorf("%s does not say %q:\n%s%s", args, part, out, &stderr)
			}
		}
		if code != exit {
			t.Fatalf("%s: exit code %d, want %d\n%s%s", args, code, exit, out, &stderr)
		}
		return string(out)
	}
	words := strings.Fields

	var s client.Session
	created := run(0, append(words("session create --default-of ada --fresh --label team=qa --json --webhook "+site.URL+"/hook?token=t0 --start-url"), site.URL+"/"))
	if err := json.Unmarshal([]byte(created), &s); err != nil || s.CDPURL == "" || s.Labels["team"] != "qa" {
		t.Fatal(err, created)
	}
	run(0, words("session list --user ada"), "ID ", "STATUS", s.ID, "ready")
	run(0, words("session show "+s.ID), "user:", "ada", s.CDPURL)
	run(0, words("session open --view-only "+s.ID), s.ViewURL)
	run(0, words("session save --default --label one "+s.ID), "snapshot:", "version 1", "127.0.0.1 (until ")
	run(0, append(words("session exec "+s.ID+" --"), "sh", "-c", "echo $STASIS_SESSION_ID $STASIS_CDP_URL"), s.ID+" "+s.CDPURL)
	run(3, append(words("session exec "+s.ID+" --"), "sh", "-c", "exit 3"), "sh ended with exit code 3")
	run(0, words("session logs "+s.ID), "started  ", "saved  ", "snapshot_id=")
	run(0, words("session end --default "+s.ID), "version 2")
	run(1, words("session open "+s.ID), "the session is completed; resume it")
	run(1, words("session exec "+s.ID+" -- true"), "the session is completed; resume it")
	run(0, words("session resume "+s.ID), "ready", "verification")
	run(0, words("session end "+s.ID), "session ended")
	run(1, words("session show nobody"), "session_not_found")

	// A session that finds that its default has moved is saved. It moves the default only with --overwrite.
	run(1, words("session create --default-of eve"), `--default-of: user "eve" has no default`, "--default, or create with --fresh")
	run(0, words("session create --default-of eve --fresh --id one"))
	run(0, words("session save --default one"), "version 1")
	run(0, words("session create --default-of eve --id two"))
	run(0, words("session end --default one"), "version 2")
	run(1, words("session save --default two"), "snapshot:", "the default did not move; repeat the command with --overwrite")
	run(1, words("session save --json --default two"), `"version_conflict"`, "the default did not move; repeat the command with --overwrite")
	run(1, words("session end --default two"), "snapshot:", "the default did not move; repeat the command with --overwrite")
	run(0, words("session end --default --overwrite two"), "the default was moved")

	run(0, words("user list"), "ada", "version 2", "2")
	run(0, words("user default ada"), "version:", "127.0.0.1 (until ")
	var history []client.Default
	if err := json.Unmarshal([]byte(run(0, words("user history ada --json"))), &history); err != nil || len(history) != 2 {
		t.Fatal(err, history)
	}
	run(0, words("user history ada"), "VERSION", history[1].SnapshotID)
	run(0, words("user rollback ada 1"), history[1].SnapshotID+" now (version 3)")
	run(2, words("user rollback ada 9"), "ada has no version 9")
	run(0, words("snapshot diff "+history[1].SnapshotID+" "+history[0].SnapshotID), "KIND")
	run(1, words("user check ada"), "no_login_check")
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/ada", body{"login_check": obj{"url": site.URL + "/", "text": "welcome back", "timeout_seconds": 60}})
	run(0, words("user check ada"), "logged in")
	run(0, words("user show ada"), "welcome back")
	d.Must(t, http.StatusOK, http.MethodPatch, "/v1/users/ada", body{"login_check": obj{"url": site.URL + "/", "text": "elsewhere", "timeout_seconds": 60}})
	run(1, words("user check ada"), "logged out: text", "the default of ada is not logged in")
	run(2, words("session"), "session create")

	run(0, words("snapshot list"), "LABEL", history[1].SnapshotID, " ada ", " one")
	run(0, words("snapshot verify "+history[1].SnapshotID+" --json"), `"ok":true`)
	deliveries := run(0, words("webhook deliveries"), "LAST ERROR", "session.created", s.ID, strings.TrimPrefix(site.URL, "http://"))
	if strings.Contains(deliveries, "t0") {
		t.Errorf("deliveries for people have the whole address:\n%s", deliveries)
	}
	var list []client.Delivery
	if err := json.Unmarshal([]byte(run(0, words("webhook deliveries --json --limit 1"))), &list); err != nil || len(list) != 1 || list[0].URL != site.URL+"/hook?token=t0" {
		t.Fatal(err, list)
	}
	run(0, words("webhook resend "+list[0].ID), list[0].Event+" to "+strings.TrimPrefix(site.URL, "http://")+"/hook again at 20")
	run(1, words("webhook resend nobody"), "not_found")

	secret := run(0, words("key create ci --user ada --rights view,create"), "acts for user ada, with the rights view, create")
	if !strings.HasPrefix(secret, "stasis_") || strings.Count(secret, "\n") != 1 || !strings.HasSuffix(secret, "\n") {
		t.Fatalf("standard output of key create: %q", secret)
	}
	run(0, words("key show --key "+secret), "user:", "ada", "view, create")
	run(1, words("key list --key "+secret), "forbidden")
	var made client.Key
	if err := json.Unmarshal([]byte(run(0, words("key create operator --all-users --json"))), &made); err != nil || made.Secret == "" || !made.AllUsers {
		t.Fatal(err, made)
	}
	keys := run(0, words("key list"), "ALL USERS", made.ID, "operator")
	if strings.Contains(keys, "stasis_") {
		t.Errorf("a list of keys with secrets:\n%s", keys)
	}
	run(0, words("key delete "+made.ID))
	run(1, words("key show --key "+made.Secret), "unauthorized", "the key is that of --key")
	run(1, words("key delete "+made.ID), "key_not_found")
	run(1, words("key create ci --rights everything"), "rights[0]: must be one of")

	run(0, words("doctor --data-dir "+d.Dir), "ok    Chrome ", "its sandbox is on", "Landlock", "ok    addresses", "free in", "listens at "+d.URL, "daemon         ready")
	run(1, words("doctor --listen 127.0.0.1:1 --chrome /absent/chrome --data-dir "+t.TempDir()), "FAIL  Chrome", "is not an executable file; name another (--chrome)", "failed: the daemon does not run well")
}
