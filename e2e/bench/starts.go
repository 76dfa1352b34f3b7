package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// startsTitle is the heading of the page's section about daemons that are no nodes.
const startsTitle = "A daemon without flags, now and before there were nodes"

const (
	// mostForNodes is how many times longer, or more, anything may take than before there were
	// nodes.
	mostForNodes = 1.05
	// readyPause is the time between two looks whether a daemon is ready. It is less than what
	// counts.
	readyPause = time.Millisecond
)

// version is one of the binaries whose starts are compared.
type version struct {
	binary string
	dir    string // data directory of starts that find one
	uids   int
}

// startKind is a kind of start.
type startKind struct {
	name  string
	fresh bool // with an empty data directory
	args  []string
	idle  bool // what the daemon takes is counted when it has its spares and does nothing
}

// startKinds are those that are compared.
var startKinds = []startKind{
	{name: "the first start", fresh: true},
	{name: "a later start", idle: true},
	{name: "a later start without the trial start of Chrome (`--no-preflight`)", args: []string{"--no-preflight"}},
}

// runStarts starts the binary and an older one in turn, in a random order, and compares how fast
// they are ready and what they take.
func (b *bench) runStarts(ctx context.Context) (err error) {
	older, err := b.buildBase(ctx)
	if err != nil {
		return err
	}
	versions := []*version{{binary: b.binary}, {binary: older}}
	for i, v := range versions {
		b.hosts++
		v.dir, v.uids = filepath.Join(b.scratch, fmt.Sprint("kept", i)), firstUID+1000*b.hosts
		if _, err := b.startOnce(ctx, v, startKind{}); err != nil { // makes the data directory
			return err
		}
	}
	order := rand.New(rand.NewPCG(b.seed, 0))
	pairs := map[string][][2]float64{}
	for round := range b.rounds + 1 {
		progress("round %d of %d", round, b.rounds)
		for _, n := range order.Perm(len(startKinds)) {
			kind := startKinds[n]
			var got [2]map[string]float64
			for _, i := range order.Perm(len(versions)) {
				if got[i], err = b.startOnce(ctx, versions[i], kind); err != nil {
					return fmt.Errorf("%s of %s: %w", kind.name, versions[i].binary, err)
				}
			}
			for what := range got[0] {
				if round > 0 { // the first one is a warm-up
					pairs[what] = append(pairs[what], [2]float64{got[0][what], got[1][what]})
				}
			}
		}
	}
	return b.writeCost(b.startsSection(pairs))
}

// The names of what is counted besides times.
var startCounts = []string{"resident memory, MB", "of it private, MB", "open files", "threads"}

// startsSection has a row for each kind of start and each count.
func (b *bench) startsSection(pairs map[string][][2]float64) section {
	s := section{
		title: startsTitle,
		text: fmt.Sprintf("`make bench-start` on %s: `stasis serve` with default settings, and the same of commit `%.8s`, which is the last one before\n"+
			"there were PostgreSQL and nodes. Both start in turn, in a random order. Times are from the start of the process until `/readyz`\n"+
			"answers 200, in milliseconds. Most of them is a trial start of Chrome. Memory, files and threads are those of the daemon's\n"+
			"process when it has its spares and does nothing. Memory that is not private is pages of the binary, which all daemons share\n"+
			"and the kernel can drop. The columns have the median, with the middle half in brackets. The ratio is\n"+
			"that of the medians. Its interval holds 95 %% of %d samples of the same size, drawn again (the bootstrap). %s",
			time.Now().UTC().Format(time.DateOnly), b.base, bootstraps, machineLine(b.machine)),
		head: []string{"", "count", "now", "before", "×", "95 %", "at most"},
	}
	var names []string
	for _, kind := range startKinds {
		names = append(names, kind.name)
	}
	for _, what := range append(names, startCounts...) {
		s.rows = append(s.rows, ratioRowWithin(what, pairs[what], mostForNodes, rand.New(rand.NewPCG(b.seed, 1))))
	}
	return s
}

// startOnce starts a daemon and stops it. It returns milliseconds by the kind's name, and counts.
func (b *bench) startOnce(ctx context.Context, v *version, kind startKind) (got map[string]float64, err error) {
	if err := settle(ctx); err != nil {
		return nil, err
	}
	d := &rig.Daemon{Binary: v.binary, Dir: v.dir, UIDs: v.uids, Args: append([]string{"--chrome", b.chrome, "--shell", b.shell}, kind.args...)}
	if kind.fresh {
		d.Dir = v.dir + "-fresh"
		defer func() { err = errors.Join(err, os.RemoveAll(d.Dir)) }()
	}
	began := time.Now()
	if err := d.Start(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Stop(os.Interrupt)) }()
	err = pollEach(ctx, readyPause, pageDeadline, func() (bool, error) {
		return d.Call(ctx, http.MethodGet, "/readyz", nil, nil) == nil, nil
	})
	if err != nil {
		return nil, err
	}
	got = map[string]float64{kind.name: milliseconds(time.Since(began))}
	if !kind.idle {
		return got, nil
	}
	h := &host{Daemon: d, spares: 1}
	if err := h.ready(ctx, 0); err != nil {
		return nil, err
	}
	counts, err := taken(d.PID())
	for i, n := range counts {
		got[startCounts[i]] = n
	}
	return got, err
}

// taken returns what a process takes, in the order of startCounts.
func taken(pid int) (counts []float64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return nil, err
	}
	threads := -1
	for line := range strings.Lines(string(raw)) {
		if value, is := strings.CutPrefix(line, "Threads:"); is {
			if threads, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return nil, err
			}
		}
	}
	mb := func(field string) float64 { return float64(kilobytes(string(raw), field)) / 1024 }
	return []float64{mb("VmRSS:"), mb("RssAnon:"), float64(len(files)), float64(threads)}, nil
}

// buildBase builds the binary of the commit -base, as make build does.
func (b *bench) buildBase(ctx context.Context) (binary string, err error) {
	tree := filepath.Join(b.scratch, "base")
	git := func(args ...string) error {
		out, err := exec.CommandContext(context.WithoutCancel(ctx), "git", args...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
		}
		return nil
	}
	progress("building %s", b.base)
	if err := git("worktree", "add", "--detach", tree, b.base); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, git("worktree", "remove", "--force", tree)) }()
	binary = filepath.Join(b.scratch, "stasis-base")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+b.base, "-o", binary, "./cmd/stasis")
	build.Dir, build.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return binary, nil
}
