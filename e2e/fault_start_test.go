package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/browser/profile"
	"github.com/stasisd/stasis/e2e/apps"
	"github.com/stasisd/stasis/e2e/daemon"
)

// serve runs the binary until it ends, and returns its exit code and output.
func serve(t *testing.T, prefix []string, args ...string) (code int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), grace)
	defer cancel()
	line := append(append(append([]string{}, prefix...), daemon.Binary(t), "serve", "--listen", "127.0.0.1:0"), args...)
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "STASIS_API_KEY="+daemon.Key, fmt.Sprint("STASIS_UID_BASE=", daemon.UIDBase()), "STASIS_UID_COUNT=50")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		t.Fatalf("serve %q did not end: %v\n%s", args, err, out.String())
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// If the daemon cannot start, it prints one message that says how to fix that, and has
// its own exit code.
func TestFaultStart(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: []string{"--engine", "shell"}})
	closed := daemon.DataDir(t)
	inside := filepath.Join(closed, "below")
	if err := errors.Join(os.Mkdir(inside, 0o711), os.Chmod(closed, 0o700)); err != nil {
		t.Fatal(err)
	}
	notADir := filepath.Join(daemon.DataDir(t), "file")
	if err := os.WriteFile(notADir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(daemon.DataDir(t), strings.Repeat("long", 30))
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"a second daemon", []string{"--data-dir", d.Dir}, 5, "another stasis"},
		{"no Chrome", []string{"--data-dir", daemon.DataDir(t), "--chrome", "/nowhere/chrome"}, 3, "apt-get install chromium"},
		{"a Chrome that is none", []string{"--data-dir", daemon.DataDir(t), "--chrome", "/bin/true"}, 3, "apt-get install chromium"},
		{"a foreign address", []string{"--data-dir", daemon.DataDir(t), "--listen", "0.0.0.0:0"}, 2, "--insecure-listen"},
		{"half a TLS setting", []string{"--data-dir", daemon.DataDir(t), "--tls-cert", "x"}, 2, "--tls-key"},
		{"a closed folder above", []string{"--data-dir", inside}, 2, "chmod o+x"},
		{"a file for a folder", []string{"--data-dir", notADir}, 2, "--data-dir"},
		{"a path too long for sockets", []string{"--data-dir", long}, 2, "shorter"},
		{"an unknown flag", []string{"--no-such-flag"}, 2, "--no-such-flag"},
		{"a malformed value", []string{"--max-sessions", "many"}, 2, "max-sessions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, said := serve(t, nil, c.args...)
			if code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d, want %d with %q:\n%s", code, c.code, c.says, said)
			}
			if strings.Contains(said, "panic") || strings.Contains(said, "goroutine ") {
				t.Errorf("more than one message:\n%s", said)
			}
		})
	}
	// The running daemon was not disturbed.
	finish(t, d, begin(t, d, obj{}).ID, throwAway)
}

// A daemon without root works the same way for its one user, with both engines.
func TestFaultUnprivileged(t *testing.T) {
	t.Parallel()
	d := daemon.Start(t, byOrdinaryUser(t, daemon.Options{NoSpares: true}))
	site := apps.StartProbe(t)
	last := ""
	for _, engine := range []string{browser.EngineChrome, browser.EngineShell} {
		mode := toFiles
		if engine == browser.EngineShell {
			mode = toMemory
		}
		s := begin(t, d, obj{"engine": engine})
		if got := uidOf(t, mains(d)[0]); got != unprivileged {
			t.Errorf("Chrome runs as user %d", got)
		}
		w := dial(t, s.CDP)
		page, _ := w.page()
		w.open(page, site.URL+"/")
		w.eval(page, `document.cookie = "login=yes"; localStorage.setItem("kept", "yes")`)
		if r := w.try("", "Target.createTarget", obj{"url": "file:///etc/passwd"}); r.Error == nil {
			t.Error("the page could open a file")
		}
		finish(t, d, s.ID, mode+andDefault)
		if mode == toMemory {
			d.Stop(t)
			d.Restart(t)
		}
		back := begin(t, d, obj{"restore_default_environment_from_user_id": "default"})
		w = dial(t, back.CDP)
		page, _ = w.page()
		w.awaitRestored(page)
		if got := w.eval(page, `document.cookie + localStorage.getItem("kept")`); got != "login=yesyes" {
			t.Errorf("%s: after the restore: %q", mode, got)
		}
		if last = back.ID; mode == toFiles {
			finish(t, d, back.ID, throwAway)
		}
	}
	d.Kill(t)
	nothingRuns(t, d, afterKill)
	d.Restart(t)
	if s := look(t, d, last); s.Status != "terminated" || s.Outcome == nil || s.Outcome.Snapshot == nil {
		t.Errorf("after a kill: %+v", s)
	}
	nothingLeft(t, d)
	if a := d.Call(t, http.MethodGet, "/healthz", nil); a.Status != http.StatusOK {
		t.Errorf("healthz = %d", a.Status)
	}
}

// The daemon does not follow symbolic links that were planted in its data directory.
func TestFaultPlantedLinks(t *testing.T) {
	t.Parallel()
	target := daemon.DataDir(t)
	kept := filepath.Join(target, "kept")
	if err := os.WriteFile(kept, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := daemon.Start(t, daemon.Options{NoSpares: true, Args: shellUnlessLong()})
	s := begin(t, d, obj{"session_id": "lost"})
	dir := onlyRunDir(t, d)
	d.Kill(t)
	nothingRuns(t, d, afterKill)
	// In the run folder: a link instead of a run directory, and links in the profile to
	// be rescued and in the folders to be removed.
	profile := filepath.Join(dir, "profile", profile.Folder(filepath.Join(dir, "profile")))
	for link, to := range map[string]string{
		filepath.Join(d.Dir, "run", "zz"): target, filepath.Join(dir, "files", "out"): target,
		filepath.Join(profile, "Cookies-stolen"): kept, filepath.Join(profile, "Local Storage", "out"): target,
	} {
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	d.Restart(t)
	if raw, err := os.ReadFile(kept); err != nil || string(raw) != "kept" {
		t.Errorf("the file behind the links: %q, %v", raw, err)
	}
	if ownerOf(t, target) != os.Geteuid() || ownerOf(t, kept) != os.Geteuid() {
		t.Error("the owner of the file behind the links was changed")
	}
	if now := look(t, d, s.ID); now.Status != "terminated" {
		t.Errorf("the session is %s", now.Status)
	}
	if now := look(t, d, s.ID); now.Outcome == nil || now.Outcome.Snapshot == nil {
		t.Fatalf("nothing was rescued: %+v", now)
	}
	if err := os.Remove(filepath.Join(d.Dir, "run", "zz")); err != nil { // the link itself must still be there
		t.Error(err)
	}
	back := begin(t, d, obj{"restore_from_session_id": s.ID})
	for _, name := range files(t, filepath.Join(onlyRunDir(t, d), "profile")) {
		if strings.Contains(name, "stolen") {
			t.Errorf("the snapshot has a link's target: %s", name)
		}
	}
	finish(t, d, back.ID, throwAway)

	// In the store: the daemon does not write through a link in place of the archives
	// folder.
	d.Stop(t)
	archives := filepath.Join(d.Dir, "snapshots", "archives")
	if err := errors.Join(os.Rename(archives, archives+".away"), os.Symlink(target, archives)); err != nil {
		t.Fatal(err)
	}
	d.Restart(t)
	s = begin(t, d, obj{"engine": browser.EngineShell})
	if a := d.Call(t, http.MethodDelete, at(s.ID, "?", toFiles), nil); a.Status < http.StatusInternalServerError {
		t.Errorf("a save over a link = %d %s", a.Status, a.Body)
	}
	finish(t, d, s.ID, throwAway)
	if found := files(t, target); len(found) != 1 {
		t.Errorf("the daemon wrote through a link: %q", found)
	}
}
