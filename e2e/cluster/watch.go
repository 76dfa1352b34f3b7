package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stasisd/stasis/e2e/nodes"
)

// place is the run directory of a Chrome.
type place struct{ node, dir string }

// watch looks for sessions that live on two nodes at once: all the time, at the processes of
// this machine, also while a node or the server does not answer.
type watch struct {
	*nodes.Cluster
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	owners map[place]string // the session of each run directory that the catalogue has named
	double map[string]bool  // sessions with running Chromes on two nodes
}

// watchEvery is the time between two looks.
const watchEvery = 200 * time.Millisecond

// startWatch watches until stop.
func startWatch(ctx context.Context, c *nodes.Cluster) (*watch, error) {
	w := &watch{Cluster: c, owners: map[place]string{}, double: map[string]bool{}}
	if err := w.read(ctx); err != nil {
		return nil, err
	}
	ctx, w.cancel = context.WithCancel(ctx)
	w.work.Go(func() {
		for ctx.Err() == nil {
			_ = w.read(ctx) // the server may be away
			w.look()
			_ = sleep(ctx, watchEvery)
		}
	})
	return w, nil
}

func (w *watch) stop() {
	w.cancel()
	w.work.Wait()
}

// query runs a query on the catalogue, with the columns as texts.
func (w *watch) query(ctx context.Context, query string, args ...any) ([][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	conn, err := pgx.Connect(ctx, w.Database())
	if err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]string, error) {
		values, err := row.Values()
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = fmt.Sprint(v)
		}
		return texts, err
	})
	return all, errors.Join(err, conn.Close(ctx))
}

// read reads which run directory belongs to which session.
func (w *watch) read(ctx context.Context) error {
	rows, err := w.query(ctx, "SELECT node_id, run_dir, session_id FROM sessions WHERE ended_at = 0 UNION SELECT node_id, run_dir, session_id FROM left_sessions")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, row := range rows {
		w.owners[place{row[0], row[1]}] = row[2]
	}
	return err
}

// livesOn returns the sessions that live on a node.
func (w *watch) livesOn(ctx context.Context, node string) (map[string]bool, error) {
	rows, err := w.query(ctx, "SELECT session_id FROM sessions WHERE ended_at = 0 AND node_id = $1", node)
	on := map[string]bool{}
	for _, row := range rows {
		on[row[0]] = true
	}
	return on, err
}

// look looks twice: a session whose Chrome runs on one node in both looks, and on another one
// in between, lives on two nodes.
func (w *watch) look() {
	first := w.running()
	if len(w.both(first)) == 0 {
		return
	}
	second := w.both(w.running())
	for _, id := range w.both(first) {
		if slices.Contains(second, id) {
			w.mu.Lock()
			w.double[id] = true
			w.mu.Unlock()
		}
	}
}

// both returns the sessions that have Chromes on two nodes.
func (w *watch) both(at map[place]bool) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	on := map[string]map[string]bool{}
	for p := range at {
		if id := w.owners[p]; id != "" {
			if on[id] == nil {
				on[id] = map[string]bool{}
			}
			on[id][p.node] = true
		}
	}
	var two []string
	for id, nodes := range on {
		if len(nodes) > 1 {
			two = append(two, id)
		}
	}
	return two
}

// doubles returns the sessions that were found since the last call.
func (w *watch) doubles() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := slices.Sorted(maps.Keys(w.double))
	w.double = map[string]bool{}
	return found
}

// running returns where Chromes run that nothing has stopped.
func (w *watch) running() map[place]bool {
	at := map[place]bool{}
	for p, states := range w.chromes() {
		if strings.Trim(states, "TtZX") != "" {
			at[p] = true
		}
	}
	return at
}

// chromes returns the states of the processes of each Chrome, as in /proc/PID/stat.
func (w *watch) chromes() map[place]string {
	const flag = "--user-data-dir="
	found := map[place]string{}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		command, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		if err != nil {
			continue // it has ended
		}
		_, path, chrome := bytes.Cut(command, []byte(flag))
		if !chrome {
			continue
		}
		for _, n := range w.Nodes {
			rest, own := strings.CutPrefix(string(path), filepath.Join(n.Dir, "run")+"/")
			stat, err := os.ReadFile(filepath.Join(proc, "stat"))
			if !own || err != nil {
				continue
			}
			dir, _, _ := strings.Cut(rest, "/")
			after := bytes.TrimLeft(stat[bytes.LastIndexByte(stat, ')')+1:], " ")
			found[place{n.ID, dir}] += string(after[:1])
		}
	}
	return found
}
