package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// write writes a page, or prints it.
func (s settings) write(name, text string) error {
	if s.out == "" {
		_, err := fmt.Print(text)
		return err
	}
	return os.WriteFile(filepath.Join(s.out, name), []byte(text), 0o644) //nolint:gosec // a page
}

// kindSum is what the rounds with one kind of fault have found.
type kindSum struct {
	kind   string
	rounds int
	on     int // kept sessions that lived on the node with the fault
	times  []time.Duration
	counts counts
}

// add adds a round.
func (k *kindSum) add(o *round) {
	k.rounds++
	k.on += len(o.on)
	k.times = append(k.times, o.times()...)
	k.counts.add(o.counts)
}

// add adds what was counted after another round.
func (a *counts) add(b counts) {
	a.double, a.loser, a.lost, a.stuck, a.left = a.double+b.double, a.loser+b.loser, a.lost+b.lost, a.stuck+b.stuck, a.left+b.left
	a.hung += b.hung
	a.saves, a.restored, a.moves = a.saves+b.saves, a.restored+b.restored, a.moves+b.moves
}

// sums returns what was found by kind, in the order of the table of faults, and of all.
func (r *report) sums() (kinds []*kindSum, all *kindSum) {
	all = &kindSum{kind: "all"}
	for _, f := range faults {
		sum := &kindSum{kind: f.name}
		for _, o := range r.rounds {
			if o.kind == f.name {
				sum.add(o)
				all.add(o)
			}
		}
		if sum.rounds > 0 {
			kinds = append(kinds, sum)
		}
	}
	return kinds, all
}

// page returns the page.
func (r *report) page() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	kinds, all := r.sums()
	s := r.settings
	line("# A cluster whose parts fail")
	line("")
	line("`make cluster-torture` has written this page. Three nodes run on one machine, each in a network namespace, with")
	line("PostgreSQL, versitygw and a load balancer before them. Under load, one part after the other fails. After each fault")
	line("the load stops, and the command compares the catalogue, the store, the processes and the files with what clients were")
	line("answered. [tests.md](tests.md#a-cluster) says what is counted, and [cluster.md](cluster.md) how to run nodes.")
	line("")
	line("| | |")
	line("|---|---|")
	for _, row := range machine() {
		line("| %s | %s |", row[0], row[1])
	}
	line("| faults | %d, of %v each; PostgreSQL was away for %v |", len(r.rounds), s.fault, s.restart)
	line("| the run took | %v, without its start |", r.took.Round(time.Second))
	line("")
	line("## What must be 0")
	line("")
	line("| after %d faults | found | of |", len(r.rounds))
	line("|---|---|---|")
	c := all.counts
	line("| sessions that live on two nodes at once | %d | looks every %v |", c.double, watchEvery)
	line("| defaults that a loser moved, or a winner did not | %d | %d confirmed moves |", c.loser, c.moves)
	line("| confirmed saves that are lost or have other content | %d | %d, of which %d were restored in a browser |", c.lost, c.saves, c.restored)
	line("| sessions that cannot be resumed although they have a save | %d | %d that lost their node, or may have |", c.stuck, all.on)
	line("| Chromes, directories, parts of uploads and locks left behind | %d | |", c.left)
	line("| calls to a node cut from the others that are not answered within %v | %d | |", cutDeadline, c.hung)
	line("| faults at the end: all saves read again, nodes stopped, `stasis store check --read-data` | %d | %d saves |", len(r.end), r.saves)
	line("")
	line("## Seconds until a session is used again")
	line("")
	line("Of sessions whose node had the fault, and whose client lost its connection. The time is from the fault until the client")
	line("has resumed the session on any node and has read its cookies. A node that is cut from the other nodes keeps its")
	line("sessions. The load balancer does not know that, and sends two of three calls to nodes which cannot reach it. A client")
	line("of a node that is cut from S3 connects again if a save has kept it waiting.")
	line("")
	line("| fault | rounds | sessions on the node | of those, connected again | p50 | p95 | longest |")
	line("|---|---|---|---|---|---|---|")
	for _, k := range append(kinds, all) {
		line("| %s | %d | %d | %d | %s | %s | %s |", k.kind, k.rounds, k.on, len(k.times), quantile(k.times, 0.5), quantile(k.times, 0.95), quantile(k.times, 1))
	}
	var found []string
	for _, o := range r.rounds {
		for _, f := range o.found {
			found = append(found, fmt.Sprintf("- %s %s: %s", o.kind, o.victim, f))
		}
	}
	for _, f := range r.end {
		found = append(found, "- at the end: "+f)
	}
	if len(found) > 0 {
		line("")
		line("## Found")
		line("")
		line("%s", strings.Join(found, "\n"))
	}
	return b.String()
}

// quantile returns a quantile of times in seconds.
func quantile(times []time.Duration, q float64) string {
	if len(times) == 0 {
		return "–"
	}
	sorted := slices.Sorted(slices.Values(times))
	return fmt.Sprintf("%.1f", sorted[min(int(q*float64(len(sorted))), len(sorted)-1)].Seconds())
}

// machine describes the machine.
func machine() [][]string {
	rows := [][]string{{"date", time.Now().UTC().Format(time.DateOnly)}, {"cores", fmt.Sprint(runtime.NumCPU())}}
	load, _, _ := strings.Cut(readLine("/proc/loadavg"), " ")
	rows = append(rows, []string{"kernel", readLine("/proc/sys/kernel/osrelease")}, []string{"load at the end", load})
	for _, program := range [][]string{{"/usr/lib/chromium/chromium-headless-shell", "--version", "--no-sandbox"}, {"psql", "--version"}} {
		out, err := exec.CommandContext(context.Background(), program[0], program[1:]...).Output()
		if err == nil {
			rows = append(rows, []string{program[0][strings.LastIndexByte(program[0], '/')+1:], strings.TrimSpace(string(out))})
		}
	}
	return rows
}

func readLine(path string) string {
	raw, err := os.ReadFile(path)
	first, _, _ := strings.Cut(string(raw), "\n")
	return cmp.Or(first, fmt.Sprint(err))
}
