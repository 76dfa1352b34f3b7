package main

import (
	"fmt"
	"strings"
	"time"
)

// page returns the page of the upgrades.
func (r *upgraded) page() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# A cluster that is upgraded under load")
	line("")
	line("`make cluster-upgrade` has written this page. Three nodes run on one machine, each in a network namespace, with")
	line("PostgreSQL, versitygw and a load balancer before them. Under load, each node in turn gets SIGTERM, and is started")
	line("again when it has ended, with a binary that has another version number. When it is ready, the next one follows. Then the")
	line("load stops, and the command compares the catalogue, the store, the processes and the files with what clients were answered.")
	line("[tests.md](tests.md#a-cluster) says what is counted, and [cluster.md](cluster.md#upgrade) how to upgrade.")
	line("")
	line("| | |")
	line("|---|---|")
	for _, row := range machine() {
		line("| %s | %s |", row[0], row[1])
	}
	line("| upgrades of all %d nodes | %d |", nodesOfRun, r.upgrades)
	line("| the run took | %v, without its start |", r.took.Round(time.Second))
	line("")
	line("## What must be 0")
	line("")
	line("| after %d upgrades | found | of |", r.upgrades)
	line("|---|---|---|")
	c := r.counts
	line("| sessions that do not live at the same `cdp_url` with the same cookies, tab and sessionStorage | %d | %d that lived during a whole upgrade |", len(r.gone), r.stayed)
	line("| calls and connections that fail | %d | %d calls, %d CDP commands, %d sessions that clients ended |", len(r.failed), r.calls, r.commands, r.passed)
	line("| confirmed saves that are lost or have other content | %d | %d, of which %d were restored in a browser |", c.lost, c.saves, c.restored)
	line("| sessions that live on two nodes at once | %d | looks every %v |", c.double, watchEvery)
	line("| defaults that a loser moved, or a winner did not | %d | %d confirmed moves |", c.loser, c.moves)
	line("| Chromes, directories, parts of uploads and locks left behind | %d | |", c.left)
	line("")
	line("## What an upgrade costs")
	line("")
	line("| | |")
	line("|---|---|")
	line("| moves of sessions between nodes | %d |", r.moves)
	line("| CDP connections closed with 1012, whose clients connected again | %d |", r.restarted)
	line("| seconds from SIGTERM until the node has ended: median, longest | %s, %s |", quantile(r.stops, 0.5), quantile(r.stops, 1))
	line("| seconds from its start until it is ready: median, longest | %s, %s |", quantile(r.starts, 0.5), quantile(r.starts, 1))
	found := append(append(append([]string{}, r.gone...), r.failed...), r.found...)
	if len(found) > 0 {
		line("")
		line("## Found")
		line("")
		line("- %s", strings.Join(found, "\n- "))
	}
	return b.String()
}
