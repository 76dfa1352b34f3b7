package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/stasisd/stasis/session/access"
)

// demoStopGrace is how long the demo's daemon may take to stop by itself.
const demoStopGrace = 30 * time.Second

// addressForm finds the daemon's URL in what it prints, whatever the words around
// it are.
var addressForm = regexp.MustCompile(`https?://\S+`)

// demoDaemon is a daemon of the demo's own: this very binary, on a free port
// and a data directory that goes with it.
type demoDaemon struct {
	url  string // its address
	key  string // its API key
	dir  string
	cmd  *exec.Cmd
	log  bytes.Buffer
	done chan error // what the process ended with
}

// startDemoDaemon starts it and waits until it listens. What keeps it from
// that is returned with the exit code that it ended with.
func startDemoDaemon(ctx context.Context, chrome string, noLandlock bool) (_ *demoDaemon, err error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	d := &demoDaemon{key: access.NewSecret(), done: make(chan error, 1)}
	// Short, for Chrome puts a socket below it, whose path has 107 bytes at most.
	if d.dir, err = os.MkdirTemp("", "demo-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(d.dir))
		}
	}()
	// Run by root, each Chrome has a user of its own, who must pass to its folder.
	if err := os.Chmod(d.dir, 0o711); err != nil {
		return nil, err
	}
	d.cmd = exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", d.dir, "--chrome", chrome,
		"--max-sessions", "2", "--parked", "1", "--log-level", "error", fmt.Sprint("--no-landlock=", noLandlock))
	d.cmd.Env = append(withoutSettings(os.Environ()), "STASIS_API_KEY="+d.key)
	d.cmd.Stderr = &d.log
	// A terminal's Ctrl-C is for the demo, which then stops its daemon; should
	// the demo die, so does the daemon.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	address := make(chan string, 1)
	go d.watch(out, address)
	select {
	case d.url = <-address:
		return d, nil
	case err := <-d.done:
		return nil, d.failed(err)
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), d.terminate())
	}
}

// watch finds the address in what the daemon prints, and waits for its end.
func (d *demoDaemon) watch(out io.Reader, address chan<- string) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if at := addressForm.FindString(lines.Text()); at != "" {
			select {
			case address <- at:
			default: // it is known
			}
		}
	}
	d.done <- d.cmd.Wait()
}

// failed tells why the daemon ended as it did, in its own words.
func (d *demoDaemon) failed(err error) error {
	code := exitFailed
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		code = exit.ExitCode()
	}
	return exitError{code, strings.TrimPrefix(strings.TrimSpace(d.log.String()), "stasis: ")}
}

// stop ends the daemon and removes what it kept.
func (d *demoDaemon) stop() error {
	return errors.Join(d.terminate(), os.RemoveAll(d.dir))
}

// terminate ends the process and waits for it, and with it for its Chromes.
func (d *demoDaemon) terminate() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-d.done:
		if err != nil {
			return d.failed(err)
		}
		return nil
	case <-time.After(demoStopGrace):
		// Each Chrome's warden ends it when the daemon is gone.
		return errors.Join(errors.New("the demo's daemon did not stop in time"), d.cmd.Process.Kill(), <-d.done)
	}
}

// withoutSettings is an environment without those of the user's own daemon.
func withoutSettings(environment []string) []string {
	var kept []string
	for _, variable := range environment {
		if !strings.HasPrefix(variable, "STASIS_") {
			kept = append(kept, variable)
		}
	}
	return kept
}
