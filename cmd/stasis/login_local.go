package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/client"
)

// desktopChromes are the usual names of a desktop's Chrome, in PATH and elsewhere.
var desktopChromes = []string{
	"google-chrome-stable", "google-chrome", "chrome", "chromium", "chromium-browser",
	"/opt/google/chrome/chrome", "/usr/lib/chromium/chromium", "/snap/bin/chromium",
}

// desktopQuit is how long Chrome may take to end if the login is discarded, and how long
// removeProfile tries.
const desktopQuit = 10 * time.Second

// errWindowClosed is the error for a Chrome that the person has closed: the login can be saved.
var errWindowClosed = errors.New("the person has closed Chrome")

// inOwnChrome lets the person log in in this machine's own Chrome, with a fresh profile. When
// the person has closed it, the profile is imported and opened in a session.
func (l *handLogin) inOwnChrome(ctx context.Context) error {
	chrome, err := findDesktopChrome(l.Chrome)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "stasis-login-") // its mode is 0700
	if err != nil {
		return err
	}
	defer func() {
		if err := removeProfile(dir); err != nil {
			l.say("Stasis could not remove the profile of this login: %v. It may contain the login. Remove %s.\n", err, dir)
		}
	}()
	if l.before.Version > 0 {
		l.say("%s has a default, version %d. This login starts with an empty profile and replaces all of it; the history keeps that version.\n", l.user, l.before.Version)
	}
	if err := l.runChrome(ctx, chrome, dir); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return interrupted(ctx, l.importProfile(ctx, dir), "interrupted; the default of "+l.user+" stays as it was")
}

// removeProfile removes the profile. Chrome's processes may write to it for a while after the
// window has closed.
func removeProfile(dir string) error {
	for over := time.After(desktopQuit); ; {
		err := os.RemoveAll(dir)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-over:
			return err
		}
	}
}

// canRunChrome returns an error if this machine's own Chrome cannot be used.
func (c *loginCmd) canRunChrome() error {
	switch {
	case c.Timeout > 0:
		return exitError{exitUsage, "--timeout: not with --local, because no session waits"}
	case runtime.GOOS == "darwin":
		return exitError{exitUsage, "--local: not on macOS, where Chrome encrypts cookies with a key in the Keychain that the daemon cannot use; log in without --local"}
	case runtime.GOOS != "linux":
		return exitError{exitUsage, "--local: only on Linux; log in without --local"}
	case !hasDisplay():
		return exitError{exitUsage, "--local: needs a desktop, and neither DISPLAY nor WAYLAND_DISPLAY is set; log in without --local"}
	case os.Geteuid() == 0 && c.Chrome == "":
		return exitError{exitUsage, "--local: Chrome does not run as root; run this command as the user of the desktop"}
	}
	return nil
}

// findDesktopChrome returns the path of the person's Chrome.
func findDesktopChrome(given string) (string, error) {
	if given != "" {
		path, err := exec.LookPath(given)
		if err != nil {
			return "", exitError{exitChromeMissing, "--chrome: " + err.Error()}
		}
		return filepath.Abs(path)
	}
	for _, name := range desktopChromes {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", exitError{exitChromeMissing, "--local: no Chrome or Chromium was found; name one with --chrome"}
}

// runChrome runs Chrome at the site until the person closes it.
func (l *handLogin) runChrome(ctx context.Context, chrome, dir string) error {
	if err := writePreferences(dir); err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, "chrome.log"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // it is removed
	// No flag here can be noticed by a page. With the desktop's keyring, the cookies could be
	// decrypted only on this machine.
	cmd := exec.CommandContext(ctx, chrome, "--user-data-dir="+dir, "--no-first-run", "--no-default-browser-check",
		"--password-store=basic", l.site.String())
	cmd.Env, cmd.Stderr = withoutSecrets(os.Environ()), log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is a question to the person, not the end of Chrome
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = desktopQuit
	if err := cmd.Start(); err != nil {
		return exitError{exitChromeMissing, "--chrome: " + err.Error()}
	}
	over, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		if err := cmd.Wait(); err != nil {
			over <- exitError{exitFailed, fmt.Sprintf("Chrome failed, and nothing was saved: %s\n%s", err, endOf(log))}
			return
		}
		over <- errWindowClosed
	}()
	err = l.await(ctx, waiting{over: over,
		prompt: "Log in in the Chrome window that opens, then close it: it is saved as the default of " + l.user + ". Press Ctrl-C to discard it.\n"})
	if errors.Is(err, errDiscard) {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
		case <-time.After(desktopQuit):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-ended
		}
	}
	if errors.Is(err, errWindowClosed) {
		return nil
	}
	return err
}

// writePreferences makes Chrome keep session cookies when it is closed: with another value of
// restore_on_startup than 1 ("continue where you left off") it deletes them
// (chrome/browser/sessions/session_data_deleter.cc).
func writePreferences(dir string) error {
	profile := filepath.Join(dir, desktopProfile)
	if err := os.Mkdir(profile, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(profile, "Preferences"), []byte(`{"session":{"restore_on_startup":1}}`), 0o600)
}

// importProfile imports the profile and opens it in a session without tabs: the session's
// save says which logins it has, and no site is visited.
func (l *handLogin) importProfile(ctx context.Context, dir string) error {
	l.say("Importing the profile.\n")
	body := packProfile(dir)
	defer func() { _ = body.Close() }() // ends the packing if the upload fails
	var imported struct {
		Snapshot struct {
			ID        string
			SessionID string `json:"session_id"`
		}
	}
	query := url.Values{"format": {"datadir"}, "user_id": {l.user}}
	if err := l.call(ctx, http.MethodPost, "/v1/snapshots?"+query.Encode(), body, &imported); err != nil {
		return namesArgument(err)
	}
	var s struct {
		ID       string `json:"session_id"`
		Restored struct {
			Datadir        string
			FallbackReason string `json:"fallback_reason"`
		}
	}
	create := map[string]any{"user_id": l.user, "restore_from_session_id": imported.Snapshot.SessionID, "restore_tabs": false}
	if err := l.callJSON(ctx, http.MethodPost, "/v1/sessions", create, &s); err != nil {
		return exitError{exitFailed, err.Error() + "; " + l.howToMove(imported.Snapshot.ID)}
	}
	l.session = s.ID
	if s.Restored.Datadir == "none" {
		return errors.Join(exitError{exitFailed, "the daemon's Chrome cannot open the profile: " + s.Restored.FallbackReason + "; the default of " + l.user + " stays as it was"}, l.end(ctx, client.EndOptions{}, nil))
	}
	return nil
}

// endOf returns the end of a log.
func endOf(log *os.File) string {
	const most = 2048
	info, err := log.Stat()
	if err != nil {
		return ""
	}
	end := make([]byte, most)
	n, _ := log.ReadAt(end, max(0, info.Size()-most)) // what could be read is shown
	return strings.TrimSpace(string(end[:n]))
}
