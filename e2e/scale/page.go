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
	line("bounds. Half of the creates ask for their user's default, and %.0f %% of the ends save a new one. Each create has %d", 100*s.mix.saved, s.mix.lookups)
	line("lookups, at random nodes. Before the run, the machine had a load of %s: above %d, other work slowed the run down.", m.busy, runtime.NumCPU())
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
	line("| create p50, p99, longest | %s, %s, %s |", ms(l.creates.P50), ms(l.creates.P99), ms(l.creates.Most))
	line("| end without a save p50, p99 | %s, %s |", ms(l.ends.P50), ms(l.ends.P99))
	line("| end with a save p50, p99 | %s, %s |", ms(l.saves.P50), ms(l.saves.P99))
	line("| saves after another of the same user, which keep its default | %d |", l.outrun)
	line("| lookup p50, p99 | %s, %s |", ms(l.lookups.P50), ms(l.lookups.P99))
	line("| failed calls | %d |", l.creates.failures()+l.ends.failures()+l.saves.failures()+l.lookups.failures())
	line("| renewals of leases | %d, p99 %s, %d failed |", m.renewals.Count, ms(m.renewals.P99), m.renewals.failures())
	line("| transactions a second, undone by conflicts | %.0f, %.1f %% |", l.perSecond(l.after.commits-l.before.commits), l.undone())
	line("| connections of the server | %d |", l.after.connections)
	line("| memory of the server's processes | %s |", bytesText(l.after.serverMemory))
	line("| memory of all nodes together | %s |", bytesText(m.memory))
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
	line("## To a million sessions")
	line("")
	line("Computed from the figures above, not measured:")
	line("")
	line("| | |")
	line("|---|---|")
	line("| nodes with %d sessions each | %d |", s.sessions/s.nodes, million*s.nodes/s.sessions)
	line("| renewals of leases a second | %d |", million*s.nodes/s.sessions/5)
	line("| connections, as many for each node as here | %d |", million*l.after.connections/s.sessions)
	line("| creates and ends a second, if a session lives an hour | %d |", million/3600)
	line("| cores of the server for that | %.1f |", million/3600*m.serverCost()/1000)
	line("| write-ahead log an hour for that | %s |", bytesText(int64(million*l.perSecond(l.after.wal-l.before.wal)/l.rate)))
	line("| size of live sessions in the catalogue | %s |", bytesText(l.after.size/int64(max(s.sessions, 1))*million))
	return strings.TrimRight(b.String(), "\n") + "\n"
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
// lookups, in milliseconds; nodesCost that of the nodes and the load.
func (m *measured) serverCost() float64 {
	return m.long.cost(m.long.after.serverCPU - m.long.before.serverCPU)
}

func (m *measured) nodesCost() float64 {
	return m.long.cost(m.long.after.nodesCPU - m.long.before.nodesCPU)
}

func (s step) cost(took time.Duration) float64 {
	return took.Seconds() * 1000 / float64(max(s.creates.Count, 1))
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
