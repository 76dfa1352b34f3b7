// Cluster tries a cluster of three nodes on this machine, each in a network namespace. With
// -story, a session continues on other nodes when its node dies, and when it drains. Otherwise
// nodes work under load while one part after the other fails; what this counts is written to
// docs/cluster-torture.md. With -upgrades, all nodes are replaced under load, one after the other,
// and docs/cluster-upgrade.md is written. Only root can run it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/e2e/nodes"
	"github.com/stasisd/stasis/e2e/rig"
)

// settings are the command's flags.
type settings struct {
	binary  string
	clients string // folder of the client libraries
	story   bool
	rounds  int
	fault   time.Duration // how long a fault lasts
	restart time.Duration // how long the PostgreSQL server is away
	kinds   string        // of faults, with commas between them; "": all
	seed    uint64

	upgrades int    // how often all nodes are upgraded; 0: the torture
	next     string // the binary that they are upgraded to

	restore int    // restored snapshots after each round
	logs    string // folder for the logs of the nodes after a run that found something
	out     string // folder of the page; "": it is printed
}

// nodesOfRun is how many nodes the cluster has.
const nodesOfRun = 3

func main() {
	var s settings
	flag.StringVar(&s.binary, "binary", "bin/stasis", "the binary to run")
	flag.StringVar(&s.clients, "clients", "e2e/clients", "folder of the client libraries")
	flag.BoolVar(&s.story, "story", false, "run the story instead of the torture")
	flag.IntVar(&s.rounds, "rounds", 50, "how many faults")
	flag.DurationVar(&s.fault, "fault", 30*time.Second, "how long a node is stopped, cut or away")
	flag.DurationVar(&s.restart, "restart", 5*time.Second, "how long PostgreSQL is away when it restarts")
	flag.StringVar(&s.kinds, "kinds", "", "the faults, with commas between them; empty: all")
	flag.IntVar(&s.upgrades, "upgrades", 0, "upgrade all nodes so often under load, instead of the torture")
	flag.StringVar(&s.next, "next", "bin/stasis-next", "the binary that nodes are upgraded to; the next upgrade has the first one again")
	flag.Uint64Var(&s.seed, "seed", 1, "of the random choices")
	flag.IntVar(&s.restore, "restore", 3, "saved snapshots that are restored in a browser after each round")
	flag.StringVar(&s.logs, "logs", "", "folder that the nodes' logs are copied to")
	flag.StringVar(&s.out, "out", "docs", "folder of the page to write; empty: it is printed")
	flag.Parse()
	if err := nodes.Enter(); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
	rig.Main("cluster", func(ctx context.Context) error { return s.run(ctx) })
}

func (s settings) run(ctx context.Context) (err error) {
	if s.binary, err = filepath.Abs(s.binary); err != nil {
		return err
	}
	if s.story {
		return s.runStory(ctx)
	}
	if s.upgrades > 0 {
		return s.runUpgrades(ctx)
	}
	r, err := torture(ctx, s)
	if r == nil {
		return err
	}
	return errors.Join(err, s.write("cluster-torture.md", r.page()), r.failed())
}

// runUpgrades upgrades the nodes and writes the page.
func (s settings) runUpgrades(ctx context.Context) (err error) {
	if s.next, err = filepath.Abs(s.next); err != nil {
		return err
	}
	r, err := rolls(ctx, s)
	if r == nil {
		return err
	}
	return errors.Join(err, s.write("cluster-upgrade.md", r.page()), r.failedRun())
}

// start starts the cluster.
func (s settings) start(ctx context.Context, args ...string) (*nodes.Cluster, error) {
	progress("starting %d nodes", nodesOfRun)
	return nodes.Start(ctx, s.binary, nodesOfRun, args...)
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format(time.TimeOnly)}, args...)...)
}

// wait waits for a condition, until ctx ends.
func wait(ctx context.Context, what string, is func() bool) error {
	for !is() {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
	return nil
}
