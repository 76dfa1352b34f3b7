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

// chromeFlags are the flags that a Chrome was started with.
func chromeFlags(pid int) ([]string, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(raw), "\x00"), "\x00")[1:], nil
}

// sibling is a Chrome with the flags of another, but how it is spoken to and on
// a folder of its own, which it makes.
func (b *bench) sibling(ctx context.Context, dir, spoken string, flags []string) (*exec.Cmd, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	args := []string{spoken, "--user-data-dir=" + dir}
	for _, flag := range flags {
		name, _, _ := strings.Cut(flag, "=")
		if name != "--remote-debugging-pipe" && name != "--user-data-dir" && name != "--disk-cache-dir" {
			args = append(args, flag)
		}
	}
	cmd := exec.CommandContext(ctx, b.chrome, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	// As the daemon starts its own: Linux shares a core between sessions before it
	// does between their processes, so one in ours would be woken sooner.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if os.Getuid() == 0 { // its sandbox does not run for root
		const user = firstUID - 1
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: user, Gid: user}
		if err := os.Chown(dir, user, user); err != nil {
			return nil, err
		}
	}
	return cmd, nil
}

// direct starts a Chrome with flags, but a port of its own, and gives its CDP
// address and what ends it.
func (b *bench) direct(ctx context.Context, flags []string) (endpoint string, end func() error, err error) {
	dir := filepath.Join(b.scratch, "direct")
	cmd, err := b.sibling(ctx, dir, "--remote-debugging-port=0", flags)
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() error { return killed(cmd) }
	deadline := time.Now().Add(pageDeadline)
	for {
		raw, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
		if port, path, found := strings.Cut(string(raw), "\n"); err == nil && found && path != "" {
			return fmt.Sprintf("ws://127.0.0.1:%s%s", port, path), end, nil
		}
		if err := ctx.Err(); err != nil || time.Now().After(deadline) {
			return "", nil, errors.Join(errors.New("a Chrome with a port does not come up"), err, end())
		}
		time.Sleep(20 * time.Millisecond)
	}
}
