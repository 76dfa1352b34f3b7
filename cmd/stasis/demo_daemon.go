//go:build linux

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

// demoStopGrace is how long the demo's daemon may take to stop.
const demoStopGrace = 30 * time.Second

// demoUIDs is the first of the uids of the demo's Chromes. It is beyond the default range,
// whose addresses another daemon's rules may limit.
const demoUIDs = "216000"

// addressPattern matches the daemon's URL in its output, whatever text surrounds it.
var addressPattern = regexp.MustCompile(`https?://\S+`)

// demoDaemon is the demo's own daemon: this binary, on a free port, with its own data
// directory.
type demoDaemon struct {
	url  string // its address
	key  string // its API key
	dir  string
	cmd  *exec.Cmd
	log  bytes.Buffer
	done chan error // the result of the process
}

// startDemoDaemon starts the daemon and waits until it listens. If it does not start, the
// error has the daemon's message and exit code.
func startDemoDaemon(ctx context.Context, chrome string, noLandlock bool) (_ *demoDaemon, err error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	d := &demoDaemon{key: access.NewSecret(), done: make(chan error, 1)}
	// A short path: Chrome puts a socket below it, whose path may have at most 107 bytes.
	if d.dir, err = os.MkdirTemp("", "demo-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(d.dir))
		}
	}()
	// As root, each Chrome has its own user, who must be able to reach its folder.
	if err := os.Chmod(d.dir, 0o711); err != nil {
		return nil, err
	}
	d.cmd = exec.Command(binary, "serve", "--config=", "--listen", "127.0.0.1:0", "--data-dir", d.dir, "--chrome", chrome,
		"--max-sessions", "2", "--parked", "1", "--log-level", "error", "--egress", "off", "--uid-base", demoUIDs, fmt.Sprint("--no-landlock=", noLandlock))
	d.cmd.Env = append(withoutSettings(os.Environ()), "STASIS_API_KEY="+d.key)
	d.cmd.Stderr = &d.log
	// Ctrl-C in a terminal must reach only the demo, which then stops its daemon. If the
	// demo dies, so does the daemon.
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

// watch finds the address in the daemon's output and waits until the process ends.
func (d *demoDaemon) watch(out io.Reader, address chan<- string) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if at := addressPattern.FindString(lines.Text()); at != "" {
			select {
			case address <- at:
			default: // the address is known already
			}
		}
	}
	d.done <- d.cmd.Wait()
}

// failed returns the daemon's own message and exit code as an error.
func (d *demoDaemon) failed(err error) error {
	code := exitFailed
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		code = exit.ExitCode()
	}
	return exitError{code, strings.TrimPrefix(strings.TrimSpace(d.log.String()), "stasis: ")}
}

// stop ends the daemon and removes its data directory.
func (d *demoDaemon) stop() error {
	return errors.Join(d.terminate(), os.RemoveAll(d.dir))
}

// terminate ends the process and waits for it and its Chromes.
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
		// Each Chrome's warden kills it when the daemon has died.
		return errors.Join(errors.New("the demo's daemon did not stop in time"), d.cmd.Process.Kill(), <-d.done)
	}
}

// withoutSettings returns an environment without the settings of the user's own daemon.
func withoutSettings(environment []string) []string {
	var kept []string
	for _, variable := range environment {
		if !strings.HasPrefix(variable, "STASIS_") {
			kept = append(kept, variable)
		}
	}
	return kept
}
