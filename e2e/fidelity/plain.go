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

// chromeDeadline is how long a Chrome may take to start or to close.
const chromeDeadline = 60 * time.Second

// inPlainChrome starts a plain Chrome on a user data directory, calls do with its CDP
// address, and closes it. flags precede the flags that every plain Chrome has.
func inPlainChrome(ctx context.Context, chrome, dir string, flags []string, do func(endpoint string) error) (err error) {
	cmd := exec.CommandContext(ctx, chrome, append(flags, "--headless=new", "--no-sandbox", "--no-first-run", "--password-store=basic",
		"--disable-background-networking", "--user-data-dir="+dir, "--remote-debugging-port=0", blankPage)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	group := -cmd.Process.Pid
	kill := func() error { return syscall.Kill(group, syscall.SIGKILL) }
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its exit status does not matter
	}()
	defer func() {
		// Other processes of Chrome may write into the directory after the main one has ended.
		if late := eventually(context.WithoutCancel(ctx), chromeDeadline, "the plain Chrome closes", func() (bool, error) {
			return errors.Is(syscall.Kill(group, 0), syscall.ESRCH), nil
		}); late != nil {
			err = errors.Join(err, late, kill())
		}
		<-ended
	}()
	endpoint, err := devtools(ctx, dir)
	if err != nil {
		return errors.Join(err, kill())
	}
	err = do(endpoint)
	b, failed := connect(ctx, endpoint)
	if failed != nil {
		return errors.Join(err, failed, kill())
	}
	defer b.Close()
	_ = b.Call(ctx, "", "Browser.close", nil, nil) // Chrome may exit before it answers
	return err
}

// visitOnce opens one page in a plain Chrome. It returns the product and version of that
// Chrome.
func visitOnce(ctx context.Context, chrome, dir, url string) (product string, err error) {
	err = inPlainChrome(ctx, chrome, dir, nil, func(endpoint string) error {
		b, err := connect(ctx, endpoint)
		if err != nil {
			return err
		}
		defer b.Close()
		var version struct{ Product string }
		if err := b.Call(ctx, "", "Browser.getVersion", nil, &version); err != nil {
			return err
		}
		product = version.Product
		_, err = b.open(ctx, url)
		return err
	})
	return product, err
}

// devtools waits for the CDP address that a Chrome writes into its user data directory
// once it listens.
func devtools(ctx context.Context, dir string) (url string, err error) {
	err = eventually(ctx, chromeDeadline, "Chrome listens", func() (bool, error) {
		raw, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
		if err != nil {
			return false, nil // not yet
		}
		port, path, found := strings.Cut(string(raw), "\n")
		url = fmt.Sprintf("ws://127.0.0.1:%s%s", port, path)
		return found && path != "", nil
	})
	return url, err
}
