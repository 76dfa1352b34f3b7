// Package rig is what the programs that measure have in common: it starts the stasis binary, makes
// sessions, connects to any browser over plain CDP, and runs client libraries.
package rig

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Key is the API key that the daemons accept.
const Key = "measuring_key_0123456789"

// UIDCount is the number of user IDs for a daemon's Chromes.
const UIDCount = 100

// daemonDeadline is how long a daemon may take to listen, or to stop.
const daemonDeadline = 90 * time.Second

// addressForm finds the daemon's URL in its output.
var addressForm = regexp.MustCompile(`https?://\S+`)

// Daemon is a running stasis daemon. The exported fields except URL must be set before
// Start. Start may be called again after Stop.
type Daemon struct {
	Binary string
	Prefix []string  // a command that runs the binary, such as nsenter and its flags
	Listen string    // "": a free port of 127.0.0.1
	Dir    string    // data directory
	UIDs   int       // first of the UIDCount user IDs of its Chromes
	Args   []string  // further flags of serve
	Env    []string  // further environment variables
	Log    io.Writer // gets its log too; nil: nobody
	URL    string    // http://127.0.0.1:port, once it listens

	cmd   *exec.Cmd
	log   bytes.Buffer
	ended chan error
}

// Start starts the daemon and waits until it listens.
func (d *Daemon) Start(ctx context.Context) error {
	listen := cmp.Or(d.Listen, "127.0.0.1:0")
	args := append(append([]string{}, d.Prefix...), d.Binary, "serve", "--listen", listen, "--data-dir", d.Dir,
		"--uid-base", fmt.Sprint(d.UIDs), "--uid-count", fmt.Sprint(UIDCount))
	d.cmd = exec.Command(args[0], append(args[1:], d.Args...)...)
	d.cmd.Env = append(append(os.Environ(), "STASIS_API_KEY="+Key, "STASIS_CONFIG="), d.Env...)
	d.cmd.Stderr = &d.log
	if d.Log != nil {
		d.cmd.Stderr = io.MultiWriter(&d.log, d.Log)
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := d.cmd.Start(); err != nil {
		return err
	}
	address := make(chan string, 1)
	d.ended = make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if at := addressForm.FindString(lines.Text()); at != "" {
				select {
				case address <- at:
				default: // the address is already known
				}
			}
		}
		d.ended <- d.cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(ctx, daemonDeadline)
	defer cancel()
	select {
	case d.URL = <-address:
		return nil
	case err := <-d.ended:
		d.cmd = nil
		return fmt.Errorf("the daemon ended before it listened: %v: %s", err, d.log.String())
	case <-ctx.Done():
		return errors.Join(ctx.Err(), d.Stop(syscall.SIGKILL))
	}
}

// Stop ends the daemon with a signal and waits for it. It may be called more than once.
func (d *Daemon) Stop(signal os.Signal) error {
	if d.cmd == nil {
		return nil
	}
	if err := d.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case err := <-d.ended:
		d.cmd = nil
		if err != nil && signal != syscall.SIGKILL {
			return fmt.Errorf("the daemon ended: %w: %s", err, d.log.String())
		}
		return nil
	case <-time.After(daemonDeadline):
		// Each Chrome's warden ends its Chrome when the daemon is gone.
		err := errors.Join(errors.New("the daemon did not stop in time"), d.cmd.Process.Kill(), <-d.ended)
		d.cmd = nil
		return err
	}
}

// Goroutines ends the daemon with SIGQUIT and counts its goroutines. Go's runtime writes
// their stacks to the log.
func (d *Daemon) Goroutines() (int, error) {
	if err := d.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		return 0, err
	}
	select {
	case err := <-d.ended:
		d.cmd = nil
		if err == nil {
			return 0, errors.New("the daemon ended, but its log has no goroutine stacks")
		}
		return strings.Count(d.log.String(), "\ngoroutine "), nil
	case <-time.After(daemonDeadline):
		return 0, errors.Join(errors.New("the daemon did not end after SIGQUIT"), d.Stop(syscall.SIGKILL))
	}
}

// Call makes one API request. It sends a body as JSON, or unchanged if it is bytes. It
// decodes the answer into out in the same way; nil ignores it.
func (d *Daemon) Call(ctx context.Context, method, path string, body, out any) error {
	return d.CallAs(ctx, Key, method, path, body, out)
}

// CallAs is Call with another API key.
func (d *Daemon) CallAs(ctx context.Context, key, method, path string, body, out any) error {
	raw, isFile := body.([]byte)
	kind := "application/octet-stream"
	if !isFile && body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
		kind = "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, method, d.URL+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // the body is read whole below
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		refused := &Refused{Request: method + " " + path, Status: res.StatusCode, Body: string(answer)}
		var failure struct{ Code string }
		if json.Unmarshal(answer, &failure) == nil {
			refused.Code = failure.Code
		}
		return refused
	}
	if file, isFile := out.(*[]byte); isFile {
		*file = answer
		return nil
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// CopyKeys gives the data directory of a node the secrets of another one's.
func CopyKeys(from, to string) error {
	for _, name := range []string{"identity", "archive-key", "webhook-secret"} {
		raw, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, name), raw, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// PID returns the process ID of the running daemon.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Refused is the error of an answer with an error status.
type Refused struct {
	Request string // method and path
	Status  int
	Code    string // as in openapi.yaml; "" if there is none
	Body    string
}

func (r *Refused) Error() string { return fmt.Sprintf("%s: %d %s", r.Request, r.Status, r.Body) }
