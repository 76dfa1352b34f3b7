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
	"strconv"
	"strings"

	"github.com/stasisd/stasis/freeport"
)

// library is a client library's method. kind is the method's name in libraries.mjs.
type library struct {
	title, kind string
	clients     string // folder of libraries.mjs
	chrome      string
	scratch     string // folder for its user data directory
	extension   string // folder of the extension that its browsers load
	passkey     bool   // it adds an authenticator to pages
	overrides   obj    // overrides of the first browser's pages; nil for none

	cmd    *exec.Cmd
	orders io.WriteCloser
	lines  *bufio.Scanner
	errors strings.Builder
}

func (r *library) name() string { return r.title }

func (r *library) passkeys() bool { return r.passkey }

func (r *library) excluded() ([]string, string) { return nil, "" }

func (r *library) open(ctx context.Context, desktop string) (string, error) {
	dir := filepath.Join(r.scratch, r.kind)
	if err := copyDir(ctx, desktop, dir); err != nil {
		return "", err
	}
	fields, err := json.Marshal(r.overrides)
	if err != nil {
		return "", err
	}
	port, err := freeport.Find()
	if err != nil {
		return "", err
	}
	r.cmd = exec.CommandContext(ctx, "node", "libraries.mjs", r.kind, r.chrome, dir, r.extension, string(fields), strconv.Itoa(port))
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

// endpoint reads the port of the browser that was started and requests its CDP address
// there.
func (r *library) endpoint(ctx context.Context) (string, error) {
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
	defer func() { _ = res.Body.Close() }() // the body was decoded whole, or is of no use
	var version struct {
		URL string `json:"webSocketDebuggerUrl"`
	}
	err = json.NewDecoder(res.Body).Decode(&version)
	return version.URL, err
}

func (r *library) line() (string, error) {
	if !r.lines.Scan() {
		return "", fmt.Errorf("%s ended: %s", r.kind, strings.TrimSpace(r.errors.String()))
	}
	return r.lines.Text(), nil
}

func (r *library) proceed() error {
	_, err := io.WriteString(r.orders, "go on\n")
	return err
}

func (r *library) restore(ctx context.Context) (string, error) {
	if err := r.proceed(); err != nil {
		return "", err
	}
	return r.endpoint(ctx)
}

func (r *library) end(context.Context) (string, error) {
	if err := r.proceed(); err != nil {
		return "", err
	}
	return r.line()
}

// release ends the script. The script ends its browser when its standard input closes.
func (r *library) release() error {
	if r.cmd == nil || r.cmd.Process == nil {
		return nil
	}
	_ = r.orders.Close() // the script may have ended already
	var exit *exec.ExitError
	if err := r.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// copyDir copies a folder to a path that does not exist yet.
func copyDir(ctx context.Context, from, to string) error {
	out, err := exec.CommandContext(ctx, "cp", "-a", from, to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return nil
}
