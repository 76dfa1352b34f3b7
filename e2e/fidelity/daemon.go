package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// apiKey is the key of the daemons.
const apiKey = "fidelity_key_0123456789"

// daemonDeadline is how long a daemon may take to listen, or to stop.
const daemonDeadline = 90 * time.Second

// daemon is one running stasis.
type daemon struct {
	binary string
	dir    string // data directory
	uids   int    // first of its Chromes' users
	url    string
	cmd    *exec.Cmd
	log    bytes.Buffer
	ended  chan error
}

// start starts the daemon and waits until it listens.
func (d *daemon) start(ctx context.Context) error {
	d.cmd = exec.Command(d.binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", d.dir,
		"--uid-base", fmt.Sprint(d.uids), "--uid-count", "50")
	d.cmd.Env = append(os.Environ(), "STASIS_API_KEY="+apiKey)
	d.cmd.Stderr = &d.log
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
			if _, at, found := strings.Cut(lines.Text(), " listens on "); found {
				address <- at
			}
		}
		d.ended <- d.cmd.Wait()
	}()
	ctx, cancel := context.WithTimeout(ctx, daemonDeadline)
	defer cancel()
	select {
	case d.url = <-address:
		return nil
	case err := <-d.ended:
		d.cmd = nil
		return fmt.Errorf("the daemon ended: %v: %s", err, d.log.String())
	case <-ctx.Done():
		return errors.Join(ctx.Err(), d.stop(syscall.SIGKILL))
	}
}

// stop ends the daemon with a signal and waits for it; it is idempotent.
func (d *daemon) stop(signal os.Signal) error {
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
		// Each Chrome's warden ends it when the daemon is gone.
		err := errors.Join(errors.New("the daemon did not stop in time"), d.cmd.Process.Kill(), <-d.ended)
		d.cmd = nil
		return err
	}
}

// call makes one request. A body is sent as JSON, unless it is bytes; the
// answer is decoded into out likewise.
func (d *daemon) call(ctx context.Context, method, path string, body, out any) error {
	raw, isFile := body.([]byte)
	kind := "application/octet-stream"
	if !isFile && body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
		kind = "application/json"
	}
	req, err := http.NewRequestWithContext(ctx, method, d.url+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	if body != nil {
		req.Header.Set("Content-Type", kind)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }() // read whole below
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s %s", method, path, res.Status, answer)
	}
	if file, isFile := out.(*[]byte); isFile {
		*file = answer
		return nil
	}
	return json.Unmarshal(answer, out)
}
