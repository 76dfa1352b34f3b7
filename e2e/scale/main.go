// Scale measures how many sessions and nodes one catalogue in PostgreSQL bears. It runs the
// session layer, the API and the catalogue of many nodes in one process, with simulated
// browsers, and writes docs/scale.md.
//
// It searches for the rate of creates and ends that the machine bears. The nodes, the load
// and the server share the machine, so this rate is a lower bound for a separate server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// settings are the command's flags.
type settings struct {
	nodes, sessions int
	pool            int // connections of a node for transactions and reads
	mix             mix
	first           float64       // the first rate of the search; 0: it does not search
	rest            time.Duration // without a load
	step, long      time.Duration // of each rate of the search, and of the rate that is borne
	durable         bool          // the server writes to the disk at each commit
	statements      bool          // the server counts statements, and they are printed
	out             string        // the page; "": it is printed
}

func main() {
	var s settings
	flag.IntVar(&s.nodes, "nodes", 200, "how many nodes")
	flag.IntVar(&s.sessions, "sessions", 20_000, "how many sessions live")
	flag.IntVar(&s.pool, "pool", 4, "how many connections a node uses for transactions and reads (pool_max_conns)")
	flag.IntVar(&s.mix.users, "users", 5_000, "how many users the sessions are of")
	flag.Float64Var(&s.mix.restored, "restored", 0.5, "share of creates that ask for the user's default")
	flag.Float64Var(&s.mix.saved, "saved", 0.2, "share of ends that save a new default")
	flag.IntVar(&s.mix.lookups, "lookups", 2, "lookups for each create")
	flag.BoolVar(&s.mix.random, "random-ids", false, "give sessions random IDs; otherwise the nodes make them, in order of time")
	flag.Float64Var(&s.first, "from", 20, "the first rate of the search, in creates and ends a second")
	flag.DurationVar(&s.rest, "rest", 15*time.Second, "how long the nodes are measured without a load")
	flag.DurationVar(&s.step, "step", 15*time.Second, "how long each rate of the search is offered")
	flag.DurationVar(&s.long, "long", 5*time.Minute, "how long the rate that is borne is offered")
	flag.BoolVar(&s.durable, "durable", true, "the server writes each commit to the disk")
	flag.BoolVar(&s.statements, "statements", false, "print how often the server ran each statement, for a create and an end")
	flag.StringVar(&s.out, "out", "docs/scale.md", "the page to write; empty: it is printed")
	flag.Parse()
	rig.Main("scale", func(ctx context.Context) error {
		m, err := run(ctx, s)
		if err != nil {
			return err
		}
		return m.write(s.out)
	})
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// measured is what a run has measured.
type measured struct {
	settings settings
	busy     string  // the machine's load before the run, as in /proc/loadavg
	filled   summary // the creates of the first sessions
	fillTook time.Duration
	empty    int64  // bytes of the database before the first sessions
	rest     step   // without a load
	steps    []step // of the search, in order
	long     step
	renewals summary
	memory   int64 // bytes that this process uses: all nodes, with the load
}

// run starts the server and the nodes, and offers the load.
func run(ctx context.Context, s settings) (m *measured, err error) {
	busy, err := load1()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(memoryFolder(), "scale-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	c, err := startCluster(ctx, s, folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.end(context.WithoutCancel(ctx), s.sessions)) }()
	m = &measured{settings: s, busy: busy}
	l := newLoad(c.nodes, s.mix)
	defer l.client.CloseIdleConnections()
	empty, err := c.observer.read(ctx)
	if err != nil {
		return nil, err
	}
	m.empty = empty.size
	began := time.Now()
	if err := l.fill(ctx, s.sessions); err != nil {
		return nil, err
	}
	m.filled, m.fillTook = l.creates.summary(), time.Since(began)
	progress("%d sessions live on %d nodes; %.0f creates/s, p99 %v", s.sessions, s.nodes, float64(m.filled.Count)/m.fillTook.Seconds(), m.filled.P99)
	if m.rest, err = c.rest(ctx, s.rest); err != nil {
		return nil, err
	}
	borne := s.first
	if s.step > 0 {
		if borne, err = m.search(ctx, c, l); err != nil {
			return nil, err
		}
	}
	if err := l.fill(ctx, s.sessions); err != nil { // a rate that was not borne may have left fewer
		return nil, err
	}
	c.shared.renewals.reset()
	if s.statements {
		if err := c.observer.forget(ctx); err != nil {
			return nil, err
		}
	}
	if m.long, err = c.offer(ctx, l, borne, s.long); err != nil {
		return nil, err
	}
	if s.statements {
		if err := c.observer.printStatements(ctx, m.long); err != nil {
			return nil, err
		}
	}
	m.renewals = c.shared.renewals.summary()
	m.memory, err = resident()
	return m, err
}

// memoryFolder returns where run directories are: in memory, because no node of a cluster
// shares its disk with 200 others.
func memoryFolder() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return os.TempDir()
}

// resident returns the memory of this process.
func resident() (int64, error) {
	var size, pages int64
	b, err := os.ReadFile(filepath.Join("/proc/self", "statm"))
	if err == nil {
		_, err = fmt.Sscan(string(b), &size, &pages)
	}
	return pages * int64(os.Getpagesize()), err
}

// load1 returns the machine's load of the last minute.
func load1() (load string, err error) {
	b, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, err = fmt.Sscan(string(b), &load)
	}
	return load, err
}
