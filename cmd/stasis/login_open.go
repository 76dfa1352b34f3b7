package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/term"
)

// onDesktop reports whether a person at this machine's desktop sees the output.
func onDesktop() bool {
	return term.IsTerminal(int(os.Stdout.Fd())) && (runtime.GOOS == "darwin" || hasDisplay())
}

func hasDisplay() bool { return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != "" }

// openLink opens a link in the person's browser. Every user of the machine can read the
// arguments of a process, and the link holds a ticket. So the browser gets a file that only
// this user can read and that leads to the link. closed removes the file; it is nil if the
// desktop has no command that opens files.
func openLink(ctx context.Context, link string) (closed func(), err error) {
	name := "xdg-open"
	if runtime.GOOS == "darwin" {
		name = "open"
	}
	opener, err := exec.LookPath(name)
	if err != nil {
		return nil, nil //nolint:nilerr // the person opens the link instead
	}
	dir, err := os.MkdirTemp("", "stasis-login-") // its mode is 0700
	if err != nil {
		return nil, err
	}
	closed = func() { _ = os.RemoveAll(dir) }
	page, at := filepath.Join(dir, "login.html"), html.EscapeString(link)
	body := fmt.Sprintf("<!doctype html><meta charset=utf-8><meta name=referrer content=no-referrer>\n"+
		"<meta http-equiv=refresh content=\"0;url=%s\">\n<a href=\"%s\">Log in</a>\n", at, at)
	if err := os.WriteFile(page, []byte(body), 0o600); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	// The browser may be a child of this process: Ctrl-C must not reach it, nor the API key.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), opener, page)
	cmd.Env, cmd.SysProcAttr = withoutSecrets(os.Environ()), &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		closed()
		return nil, nil //nolint:nilerr // the person opens the link instead
	}
	go func() { _ = cmd.Wait() }() // it may last as long as the browser
	return closed, nil
}
