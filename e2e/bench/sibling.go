package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// chromeFlags returns the flags that a Chrome was started with.
func chromeFlags(pid int) ([]string, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")[1:], nil
}

// startSibling starts a Chrome with another Chrome's flags, except for the transport, the
// folder, which it makes, and the flag with which a spare opens no window by itself.
func (b *bench) startSibling(ctx context.Context, dir, transport string, flags []string) (*exec.Cmd, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	args := []string{transport, "--user-data-dir=" + dir}
	for _, flag := range flags {
		switch name, _, _ := strings.Cut(flag, "="); name {
		case "--remote-debugging-pipe", "--user-data-dir", "--disk-cache-dir", "--no-startup-window":
		default:
			args = append(args, flag)
		}
	}
	cmd := exec.CommandContext(ctx, b.chrome, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	// The daemon starts its Chromes in their own sessions too. Linux shares a core
	// between sessions first and then between their processes, so a Chrome in this
	// session would be woken sooner.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if os.Getuid() == 0 { // the sandbox does not run as root
		const user = firstUID - 1
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
		if err := os.Chown(dir, user, user); err != nil {
			return nil, err
		}
	}
	return cmd, nil
}

// direct starts a Chrome with flags and its own port.
func (b *bench) direct(ctx context.Context, flags []string) (server, error) {
	b.siblings++
	dir := filepath.Join(b.scratch, fmt.Sprint("direct", b.siblings))
	cmd, err := b.startSibling(ctx, dir, "--remote-debugging-port=0", flags)
	if err != nil {
		return server{}, err
	}
	if err := cmd.Start(); err != nil {
		return server{}, err
	}
	end := func() error { return killTree(cmd) }
	deadline := time.Now().Add(pageDeadline)
	for {
		raw, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
		if port, path, found := strings.Cut(string(raw), "\n"); err == nil && found && path != "" {
			return server{fmt.Sprintf("ws://127.0.0.1:%s%s", port, path), cmd.Process.Pid, end}, nil
		}
		if err := ctx.Err(); err != nil || time.Now().After(deadline) {
			return server{}, errors.Join(errors.New("the Chrome with its own port did not start in time"), err, end())
		}
		time.Sleep(20 * time.Millisecond)
	}
}
