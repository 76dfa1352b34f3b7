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
	"github.com/stasisd/stasis/e2e/rig"
)

// obj is a JSON object: of a request, a CDP command or an order to bench.mjs.
type obj map[string]any

// bench is one run: the site, the daemons, the client libraries and the results so far.
type bench struct {
	settings
	machine     [][]string // the machine and the versions of the programs
	scratch     string
	site        *probe.Site
	node        *node
	ours        *host   // with default settings
	cold        *host   // without spares
	light       *host   // with spares of the shell engine
	withStandby *host   // with a standby
	others      []*host // for single parts

	profile string          // the probe profile, as a closed Chrome's user data directory
	state   json.RawMessage // the probe profile, as Playwright's storageState

	times    times                // results of the rounds
	figures  map[string]quartiles // results of the surveys, by id
	surveyed []section            // sections of the surveys
	copies   int                  // how many copies of the profile were made
	hosts    int                  // number of the last host that was started
	siblings int                  // how many Chromes with their own ports were started
}

// newBench starts everything that the whole run needs, and logs in once. Some
// comparisons need the site only.
func newBench(ctx context.Context, s settings) (b *bench, err error) {
	b = &bench{settings: s, hosts: s.firstHost, figures: map[string]quartiles{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.scratch, err = rig.Scratch("be-"); err != nil {
		return b, err
	}
	if b.machine, err = machine(ctx, s); err != nil {
		return b, err
	}
	if b.site, err = probe.Start(time.Now); err != nil {
		return b, err
	}
	if s.guards || s.hop || s.base != "" { // they have their own daemons, and no client library
		return b, nil
	}
	if b.node, err = startNode(s.clients); err != nil {
		return b, err
	}
	var env []string
	if s.soak > 0 { // with spares of both engines and default settings
		env = []string{"STASIS_SHELL_SPARES=1"}
	}
	if b.ours, err = b.host(ctx, env); err != nil {
		return b, err
	}
	b.profile = filepath.Join(b.scratch, "profile")
	if err = b.ours.Unpack(ctx, b.ours.snapshot, b.profile); err != nil {
		return b, err
	}
	dir, err := b.copyProfile(ctx)
	if err != nil {
		return b, err
	}
	return b, b.node.do(ctx, "export", obj{"chrome": s.chrome, "dir": dir, "indexedDB": false}, &b.state)
}

// close ends everything and removes the scratch folder.
func (b *bench) close() (err error) {
	if b.node != nil {
		err = errors.Join(err, b.node.Close())
	}
	for _, h := range append([]*host{b.ours, b.cold, b.light, b.withStandby}, b.others...) {
		if h != nil {
			err = errors.Join(err, h.stop())
		}
	}
	if b.site != nil {
		err = errors.Join(err, b.site.Close())
	}
	return errors.Join(err, os.RemoveAll(b.scratch))
}

// copyProfile makes a copy of the probe profile for a browser to run on.
func (b *bench) copyProfile(ctx context.Context) (string, error) {
	b.copies++
	dir := filepath.Join(b.scratch, fmt.Sprint("copy", b.copies))
	if out, err := exec.CommandContext(ctx, "cp", "-a", b.profile, dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cp: %w: %s", err, out)
	}
	return dir, nil
}
