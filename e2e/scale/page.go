package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// million is the number of live sessions that the page computes with.
const million = 1_000_000

// write writes the page, or prints it.
func (m *measured) write(out string) error {
	text := m.page()
	if out == "" {
		_, err := fmt.Println(text)
		return err
	}
	return os.WriteFile(out, []byte(text), 0o644) //nolint:gosec // a page
}

// page returns the page.
func (m *measured) page() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	s, l := m.settings, m.long
	line("# What one catalogue bears")
	line("")
	line("`make scale` has written this page. It runs the session layer, the API and the catalogue of %d nodes in one process,", s.nodes)
	line("with simulated browsers, on one PostgreSQL. The nodes, the load and the server share %d cores, so the rates are lower", runtime.NumCPU())
	line("bounds. Calls go to random nodes: a create is placed on a node with room, and a lookup is passed on to the node where")
	line("the session lives. %.0f %% of the creates ask for their user's default, and %.0f %% of the ends save a new one. Each create", 100*s.mix.restored, 100*s.mix.saved)
	line("has %d lookups. All nodes use one API key without quotas. Before the run, the machine had a load of %s: above %d, other", s.mix.lookups, m.busy, runtime.NumCPU())
	line("work slowed the run down.")
	line("")
	line("## What breaks first")
	line("")
	for _, reason := range m.limits() {
		line("- %s", reason)
	}
	line("")
	line("## Found rate")
	line("")
	line("| creates a second, and ends | borne | create p50 | create p99 | end p99 | save p99 | lookup p99 | transactions undone |")
	line("|---|---|---|---|---|---|---|---|")
	for _, step := range m.steps {
		ok, why := step.borne()
		borne := "yes"
		if !ok {
			borne = "no: " + why
		}
		line("| %.0f | %s | %s | %s | %s | %s | %s | %.1f %% |", step.rate, borne, ms(step.creates.P50), ms(step.creates.P99), ms(step.ends.P99),
			ms(step.saves.P99), ms(step.lookups.P99), step.undone())
	}
	line("")
	line("A rate is borne if 98 %% of the creates and ends succeed in time, none fails, and the p99 of a create is at most %v.", tooSlow)
	line("")
	line("## %.0f a second for %v", l.rate, l.took.Round(time.Second))
	line("")
	line("| | |")
	line("|---|---|")
	line("| live sessions, nodes | %d, %d |", s.sessions, s.nodes)
	line("| creates of the first sessions a second, by %d callers | %.0f |", fillers, float64(m.filled.Count)/m.fillTook.Seconds())
	line("| create p50, p99, longest | %s, %s, %s |", ms(l.creates.P50), ms(l.creates.P99), ms(l.creates.Most))
	line("| end without a save p50, p99 | %s, %s |", ms(l.ends.P50), ms(l.ends.P99))
	line("| end with a save p50, p99 | %s, %s |", ms(l.saves.P50), ms(l.saves.P99))
	line("| saves after another of the same user, which keep its default | %d |", l.outrun)
	line("| lookup p50, p99 | %s, %s |", ms(l.lookups.P50), ms(l.lookups.P99))
	line("| failed calls | %d |", l.creates.failures()+l.ends.failures()+l.saves.failures()+l.lookups.failures())
	line("| renewals of leases | %d, p99 %s, %d failed |", m.renewals.Count, ms(m.renewals.P99), m.renewals.failures())
	line("| transactions and reads a second, undone by conflicts | %.0f, %.1f %% |", l.perSecond(l.after.commits-l.before.commits), l.undone())
	line("| connections of the server | %d |", l.after.connections)
	line("| memory of the server's processes | %s |", bytesText(l.after.serverMemory))
	line("| memory of all nodes together | %s |", bytesText(m.memory))
	line("| cores in use: server, nodes and load | %.2f, %.2f of %d |", l.cores(l.after.serverCPU-l.before.serverCPU), l.cores(l.after.nodesCPU-l.before.nodesCPU), runtime.NumCPU())
	line("| of these at rest, for renewals and looks at other nodes | %.2f, %.2f |", m.rest.cores(m.rest.after.serverCPU-m.rest.before.serverCPU), m.rest.cores(m.rest.after.nodesCPU-m.rest.before.nodesCPU))
	line("| processor time of the server for a create and an end | %.1f ms |", m.serverCost())
	line("| processor time of nodes and load for a create and an end | %.1f ms |", m.nodesCost())
	line("| write-ahead log an hour | %s |", bytesText(int64(3600*l.perSecond(l.after.wal-l.before.wal))))
	line("| growth of the database an hour | %s |", bytesText(int64(3600*l.perSecond(l.after.size-l.before.size))))
	line("")
	line("| table | rows an hour | bytes an hour |")
	line("|---|---|---|")
	for _, name := range slices.SortedFunc(maps.Keys(l.after.tables), func(a, b string) int {
		return cmp.Or(cmp.Compare(l.grown(b).bytes, l.grown(a).bytes), strings.Compare(a, b))
	}) {
		if g := l.grown(name); g.rows > 0 || g.bytes > 0 {
			line("| `%s` | %.0f | %s |", name, 3600*l.perSecond(g.rows), bytesText(int64(3600*l.perSecond(g.bytes))))
		}
	}
	line("")
	line("| transaction that writes | for each create | tried again |")
	line("|---|---|---|")
	for _, t := range since(l.before.transactions, l.after.transactions) {
		line("| `%s` | %.2f | %.1f %% |", t.op, l.each(t.times), 100*float64(t.conflicts)/float64(t.times))
	}
	line("")
	line("## To a million sessions")
	line("")
	line("Computed from the figures above, not measured:")
	line("")
	line("| | |")
	line("|---|---|")
	line("| nodes with %d sessions each | %d |", s.sessions/s.nodes, million*s.nodes/s.sessions)
	line("| renewals of leases a second | %d |", million*s.nodes/s.sessions/5)
	line("| rows a second that nodes read to know each other, at rest | %d |", rowsOfNodes(million*s.nodes/s.sessions))
	line("| connections, as many for each node as here | %d |", million*l.after.connections/s.sessions)
	line("| creates and ends a second, if a session lives an hour | %d |", million/3600)
	line("| cores of the server for that | %.1f |", million/3600*m.serverCost()/1000)
	line("| write-ahead log an hour for that | %s |", bytesText(int64(million*l.perSecond(l.after.wal-l.before.wal)/l.rate)))
	line("| size of live sessions in the catalogue | %s |", bytesText((m.rest.before.size-m.empty)/int64(max(s.sessions, 1))*million))
	line("")
	line("What grows with the square of the nodes is too much first, and then the connections. So give each node many sessions,")
	line("or give each part of the users a catalogue with its own nodes.")
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// rowsOfNodes returns how many rows nodes read in a second to know each other: each reads all of
// them every 5 seconds.
func rowsOfNodes(nodes int) int { return nodes * nodes / 5 }

// limits says what limited the run, and what limits a larger one.
func (m *measured) limits() (reasons []string) {
	add := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	l := m.long
	for _, s := range m.steps {
		ok, why := s.borne()
		if ok {
			continue
		}
		server, nodes := s.cores(s.after.serverCPU-s.before.serverCPU), s.cores(s.after.nodesCPU-s.before.nodesCPU)
		what := "Not the processors: calls wait for the disk, for locks, or for other programs of the machine"
		if server+nodes > busy*float64(runtime.NumCPU()) {
			what = "The processors of this machine"
		}
		add("%s, at %.0f creates a second (%s): of %d cores, the server used %.2f, nodes and load %.2f. %.1f %% of the transactions were undone by conflicts.",
			what, s.rate, why, runtime.NumCPU(), server, nodes, s.undone())
		break
	}
	one := m.settings.pool + besidesPool
	add("Connections: each node has up to %d (`pool_max_conns=%d`; 18 without it), and each is a process of the server, here with %s. PgBouncer does not help: "+
		"a node's lock and settings belong to its connections, which it may only share in the modes that lose them.", one, m.settings.pool, bytesText(l.after.serverMemory/int64(max(l.after.connections, 1))))
	add("The number of nodes: each reads all others every 5 seconds, and once a second while it places creates. That is %d rows a second for %d nodes at rest, and grows with the square.",
		rowsOfNodes(m.settings.nodes), m.settings.nodes)
	add("The audit log: one node writes at a time. A transaction takes about as long as the disk takes to write a commit, and has all that its node has gathered. " +
		"So more load makes entries late, and calls do not wait for them. If more than 10,000 wait in a node, the next ones are counted and lost.")
	return reasons
}

// busy is the share of all cores from which on the processors limit a run.
const busy = 0.85

// cores returns how many cores a processor time has kept busy.
func (s step) cores(took time.Duration) float64 {
	return took.Seconds() / s.after.at.Sub(s.before.at).Seconds()
}

// undone returns the share of transactions that were undone, in percent.
func (s step) undone() float64 {
	undone := float64(s.after.rollbacks - s.before.rollbacks)
	return 100 * undone / max(undone+float64(s.after.commits-s.before.commits), 1)
}

// perSecond divides a difference of two readings by the time between them.
func (s step) perSecond(n int64) float64 { return float64(n) / s.after.at.Sub(s.before.at).Seconds() }

// grown returns what a table has grown by.
func (s step) grown(name string) table {
	return table{s.after.tables[name].rows - s.before.tables[name].rows, s.after.tables[name].bytes - s.before.tables[name].bytes}
}

// serverCost returns the processor time of the server for a create and an end with their
// lookups, in milliseconds, without what it takes at rest; nodesCost that of the nodes and the
// load.
func (m *measured) serverCost() float64 {
	return m.cost(func(r reading) time.Duration { return r.serverCPU })
}

func (m *measured) nodesCost() float64 {
	return m.cost(func(r reading) time.Duration { return r.nodesCPU })
}

func (m *measured) cost(of func(reading) time.Duration) float64 {
	l, rest := m.long, m.rest
	took := l.cores(of(l.after)-of(l.before)) - rest.cores(of(rest.after)-of(rest.before))
	return max(took, 0) * l.after.at.Sub(l.before.at).Seconds() * 1000 / float64(max(l.creates.Count, 1))
}

func ms(d time.Duration) string { return fmt.Sprintf("%.0f ms", d.Seconds()*1000) }

func bytesText(n int64) string {
	switch {
	case n >= 1<<40:
		return fmt.Sprintf("%.1f TiB", float64(n)/(1<<40))
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
}
