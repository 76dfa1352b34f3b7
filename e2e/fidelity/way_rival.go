package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
)

// rival is a way of a client library's own, by its name in rivals.mjs.
type rival struct {
	title, kind string
	clients     string // folder of rivals.mjs
	chrome      string
	scratch     string // a folder for its user data directory
	extension   string // folder of the extension that its browsers load
	passkey     bool   // it gives pages an authenticator
	told        obj    // what the first browser's pages are told; nil for nothing

	cmd    *exec.Cmd
	orders io.WriteCloser
	lines  *bufio.Scanner
	errors strings.Builder
}

func (r *rival) name() string { return r.title }

func (r *rival) passkeys() bool { return r.passkey }

func (r *rival) otherwise() ([]string, string) { return nil, "" }

func (r *rival) open(ctx context.Context, desktop string) (string, error) {
	dir := filepath.Join(r.scratch, r.kind)
	if err := copyDir(ctx, desktop, dir); err != nil {
		return "", err
	}
	fields, err := json.Marshal(r.told)
	if err != nil {
		return "", err
	}
	r.cmd = exec.CommandContext(ctx, "node", "rivals.mjs", r.kind, r.chrome, dir, r.extension, string(fields))
	r.cmd.Dir = r.clients
	r.cmd.Stderr = &r.errors
	orders, err := r.cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	r.orders, r.lines = orders, bufio.NewScanner(out)
	if err := r.cmd.Start(); err != nil {
		return "", err
	}
	return r.endpoint(ctx)
}

// endpoint reads the port of the browser that has come up, and asks there for
// its CDP address.
func (r *rival) endpoint(ctx context.Context) (string, error) {
	port, err := r.line()
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/json/version", nil)
	if err != nil {
		return "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }() // decoded whole, or of no use
	var version struct {
		URL string `json:"webSocketDebuggerUrl"`
	}
	err = json.NewDecoder(res.Body).Decode(&version)
	return version.URL, err
}

func (r *rival) line() (string, error) {
	if !r.lines.Scan() {
		return "", fmt.Errorf("%s ended: %s", r.kind, strings.TrimSpace(r.errors.String()))
	}
	return r.lines.Text(), nil
}

func (r *rival) goOn() error {
	_, err := io.WriteString(r.orders, "go on\n")
	return err
}

func (r *rival) comeBack(ctx context.Context) (string, error) {
	if err := r.goOn(); err != nil {
		return "", err
	}
	return r.endpoint(ctx)
}

func (r *rival) end(context.Context) (string, error) {
	if err := r.goOn(); err != nil {
		return "", err
	}
	return r.line()
}

// release ends the script, which ends its browser when its orders end.
func (r *rival) release() error {
	if r.cmd == nil || r.cmd.Process == nil {
		return nil
	}
	_ = r.orders.Close() // it may have ended already
	var exit *exec.ExitError
	if err := r.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// copyDir copies a folder to a place that is not there yet.
func copyDir(ctx context.Context, from, to string) error {
	out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return nil
}
