package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// examine looks at everything after a round. Nothing else runs meanwhile.
func (r *run) examine(ctx context.Context, one *round) error {
	note := func(count *int, found []string, kind string) {
		*count += len(found)
		for _, f := range found {
			one.found = append(one.found, kind+": "+f)
		}
	}
	c := &one.counts
	note(&c.double, r.watch.doubles(), "lives on two nodes at once")
	moved, moves, err := r.contest.examine(ctx)
	if err != nil {
		return err
	}
	bySaves, more, err := r.examineMoves(ctx)
	if err != nil {
		return err
	}
	note(&c.loser, append(moved, bySaves...), "a default moved by a loser")
	c.moves = moves + more
	lost, read, restored, err := r.examineSaves(ctx)
	if err != nil {
		return err
	}
	note(&c.lost, lost, "lost")
	c.saves, c.restored = read, restored
	for _, s := range r.shorts { // a session that a fault has left open
		within, cancel := context.WithTimeout(ctx, leftDeadline)
		for !s.ended() && within.Err() == nil {
			s.end(within)
		}
		cancel()
	}
	r.mu.Lock()
	note(&c.hung, r.unanswered, "not answered")
	r.unanswered = nil
	r.mu.Unlock()
	left, err := r.left(ctx)
	note(&c.left, left, "left behind")
	c.kept = len(one.on)
	return err
}

// end reads all saves again, stops the nodes, and has the offline check read the whole store.
func (r *run) end(ctx context.Context, rep *report) error {
	for _, one := range r.saves.all {
		if err := r.read(ctx, one); err != nil {
			rep.end = append(rep.end, fmt.Sprintf("lost: snapshot %s of %s, at the end: %v", one.id, one.session, err))
		}
	}
	if err := r.Stop(); err != nil {
		rep.end = append(rep.end, err.Error())
	}
	check := exec.CommandContext(ctx, r.settings.binary, "store", "check", "--read-data", "--data-dir", r.Nodes[0].Dir)
	check.Env = append(check.Environ(), r.Nodes[0].Env()...)
	out, err := check.CombinedOutput()
	rep.checked = strings.TrimSpace(string(out))
	if err != nil {
		rep.end = append(rep.end, fmt.Sprintf("stasis store check: %v: %s", err, out))
	}
	for _, f := range rep.end {
		progress("%s", f)
	}
	return ctx.Err()
}

// String describes a round in one line, and what it has found in others.
func (o *round) String() string {
	c := o.counts
	var times []string
	for _, t := range o.times() {
		times = append(times, fmt.Sprintf("%.1f", t.Seconds()))
	}
	line := fmt.Sprintf("%s %s: %d kept sessions on it, used again after %s s; %d saves, %d restored, %d moves; two nodes %d, loser %d, lost %d, not resumable %d, left %d, not answered %d",
		o.kind, o.victim, len(o.on), strings.Join(times, " "), c.saves, c.restored, c.moves, c.double, c.loser, c.lost, c.stuck, c.left, c.hung)
	return strings.Join(append([]string{line}, o.found...), "\n  ")
}

// times returns how long sessions could not be used, sorted.
func (o *round) times() (all []time.Duration) {
	for _, t := range o.resumable {
		all = append(all, t)
	}
	slices.Sort(all)
	return all
}

// failed returns an error if anything was found.
func (r *report) failed() error {
	n := len(r.end)
	for _, o := range r.rounds {
		n += len(o.found)
	}
	if n > 0 {
		return errors.New("the run has found faults of Stasis; they are listed above and in the page")
	}
	return nil
}
