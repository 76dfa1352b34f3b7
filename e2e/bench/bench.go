package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/stasisd/stasis/e2e/apps/probe"
	"github.com/stasisd/stasis/e2e/rig"
)

// obj is a JSON object: of a request, of CDP or of an order to the clients.
type obj map[string]any

// firstUID is where the users of our Chromes begin.
const firstUID = 1_800_000_000

// bench is one run: the site, the daemon, the client libraries, and what came
// out so far.
type bench struct {
	settings
	machine [][]string // where it runs, and with what
	scratch string
	site    *probe.Site
	node    *node
	ours    *rig.Daemon

	snapshot string          // of the probe profile
	profile  string          // the same, as a closed Chrome's user data directory
	state    json.RawMessage // the same, as Playwright's storageState

	times   times                // of the rounds
	figures map[string]quartiles // of the surveys, by id
	seen    []section            // of the surveys
	copies  int                  // of the profile
}

// newBench starts all that is there for the whole run, and logs in once.
func newBench(ctx context.Context, s settings) (b *bench, err error) {
	b = &bench{settings: s, figures: map[string]quartiles{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.scratch, err = os.MkdirTemp("", "be-"); err != nil {
		return b, err
	}
	// Run by root, each of our Chromes has a user of its own, who must pass.
	if err = os.Chmod(b.scratch, 0o711); err != nil {
		return b, err
	}
	if b.machine, err = machine(ctx, s); err != nil {
		return b, err
	}
	if b.site, err = probe.Start(time.Now); err != nil {
		return b, err
	}
	if b.node, err = startNode(s.clients); err != nil {
		return b, err
	}
	b.ours = &rig.Daemon{Binary: s.binary, Dir: filepath.Join(b.scratch, "d"), UIDs: firstUID}
	if err = b.ours.Start(ctx); err != nil {
		return b, err
	}
	if b.snapshot, err = b.logIn(ctx); err != nil {
		return b, fmt.Errorf("the first login: %w", err)
	}
	if b.profile, err = b.unpack(ctx, b.snapshot); err != nil {
		return b, err
	}
	dir, err := b.copyProfile(ctx)
	if err != nil {
		return b, err
	}
	return b, b.node.do(ctx, "export", obj{"chrome": s.chrome, "dir": dir, "indexedDB": false}, &b.state)
}

func (b *bench) close() (err error) {
	if b.node != nil {
		err = errors.Join(err, b.node.close())
	}
	if b.ours != nil {
		err = errors.Join(err, b.ours.Stop(syscall.SIGTERM))
	}
	if b.site != nil {
		err = errors.Join(err, b.site.Close())
	}
	return errors.Join(err, os.RemoveAll(b.scratch))
}

// me is the page that tells who is logged in.
func (b *bench) me() string { return b.site.URL + "/me" }

// logIn makes the probe profile: one login, remembered, and something in every
// place that a browser has. It gives the snapshot.
func (b *bench) logIn(ctx context.Context) (string, error) {
	s, err := b.create(ctx, obj{})
	if err != nil {
		return "", err
	}
	t, err := s.front(ctx)
	if err != nil {
		return "", err
	}
	defer t.Close()
	if err := t.visit(ctx, b.site.URL+"/set?v=kept", `document.title === "set"`); err != nil {
		return "", err
	}
	var status int
	if err := t.evaluate(ctx, fmt.Sprintf(`fetch("/login", {method: "POST", body: new URLSearchParams(
		{user: %q, password: %q, remember: "1"})}).then(r => r.status)`, probe.User, probe.Password), &status); err != nil {
		return "", err
	}
	if status != http.StatusOK {
		return "", fmt.Errorf("the site answers %d", status)
	}
	if err := t.visit(ctx, b.me(), loggedIn); err != nil {
		return "", err
	}
	return s.end(ctx, "filesystem", false)
}

// unpack gives a snapshot's user data directory, as anybody's Chrome takes it.
func (b *bench) unpack(ctx context.Context, snapshot string) (string, error) {
	var archive []byte
	if err := b.ours.Call(ctx, http.MethodGet, "/v1/snapshots/"+snapshot+"/archive", nil, &archive); err != nil {
		return "", err
	}
	dir := filepath.Join(b.scratch, "profile")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	unpack := exec.CommandContext(ctx, "tar", "-C", dir, "--zstd", "-x")
	unpack.Stdin = bytes.NewReader(archive)
	if out, err := unpack.CombinedOutput(); err != nil {
		return "", fmt.Errorf("tar: %w: %s", err, out)
	}
	return dir, nil
}

// copyProfile gives a copy of the probe profile to run a browser on.
func (b *bench) copyProfile(ctx context.Context) (string, error) {
	b.copies++
	dir := filepath.Join(b.scratch, fmt.Sprint("copy", b.copies))
	if out, err := exec.CommandContext(ctx, "cp", "-a", b.profile, dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cp: %w: %s", err, out)
	}
	return dir, nil
}
