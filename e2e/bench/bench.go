package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/e2e/apps/probe"
)

// obj is a JSON object: of a request, of CDP or of an order to the clients.
type obj map[string]any

// bench is one run: the site, our daemon, the client libraries, and what came
// out so far.
type bench struct {
	settings
	machine  [][]string // where it runs, and with what
	scratch  string
	site     *probe.Site
	node     *node
	ours     *host   // as one starts it
	cold     *host   // without spares
	light    *host   // with spares of the shell engine
	standing *host   // with a Chrome that stands by
	others   []*host // of single parts

	profile string          // the same, as a closed Chrome's user data directory
	state   json.RawMessage // the same, as Playwright's storageState

	times   times                // of the rounds
	figures map[string]quartiles // of the surveys, by id
	seen    []section            // of the surveys
	copies  int                  // of the profile
	hosts   int                  // the number of the last one started
}

// newBench starts all that is there for the whole run, and logs in once.
func newBench(ctx context.Context, s settings) (b *bench, err error) {
	b = &bench{settings: s, hosts: s.firstHost, figures: map[string]quartiles{}}
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
	var env []string
	if s.soak > 0 { // of both engines, as one starts it
		env = []string{"STASIS_SHELL_SPARES=1"}
	}
	if b.ours, err = b.host(ctx, env); err != nil {
		return b, err
	}
	b.profile = filepath.Join(b.scratch, "profile")
	if err = b.ours.unpack(ctx, b.profile); err != nil {
		return b, err
	}
	dir, err := b.copyProfile(ctx)
	if err != nil {
		return b, err
	}
	return b, b.node.do(ctx, "export", obj{"chrome": s.chrome, "dir": dir, "indexedDB": false}, &b.state)
}

// close ends all of it, and removes what it left.
func (b *bench) close() (err error) {
	if b.node != nil {
		err = errors.Join(err, b.node.close())
	}
	for _, h := range append([]*host{b.ours, b.cold, b.light, b.standing}, b.others...) {
		if h != nil {
			err = errors.Join(err, h.stop())
		}
	}
	if b.site != nil {
		err = errors.Join(err, b.site.Close())
	}
	return errors.Join(err, os.RemoveAll(b.scratch))
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
