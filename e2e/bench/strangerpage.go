package main

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// section has a row for each thing that was timed, and one for each attack.
func (s *strangers) section(b *bench, total time.Duration) section {
	out := section{
		title: strangersTitle,
		text: fmt.Sprintf("`make strangers` on %s, %s: two users have 6 sessions of full Chrome and 16 of the shell on one daemon. In every\n"+
			"second block of 5 minutes, a hostile third user has 2 and 8 more, and attacks. In every fourth block, loops of the\n"+
			"scheduler's least priority keep all processors busy instead (`chrt --idle`): their part is what a kernel costs that leaves no\n"+
			"processor idle. Milliseconds, of the first two users only: count, median, 95th percentile. × are ratios of the percentiles.\n"+
			"Every restored session was logged in as itself, every save was restored, and nothing was left at the end. %s",
			time.Now().UTC().Format(time.DateOnly), total, machineLine(b.machine)),
		head: []string{"", "alone", "beside the hostile user", "×", "beside loops of the least priority", "×"},
	}
	for _, what := range slices.Sorted(maps.Keys(s.times[alone])) {
		row := []string{what}
		for on, of := range s.times {
			times := of[what]
			row = append(row, fmt.Sprintf("%d: %s, %s", len(times), number(spread(times).median), number(quantile(times, 0.95))))
			if side(on) != alone {
				row = append(row, number(quantile(times, 0.95)/quantile(s.times[alone][what], 0.95)))
			}
		}
		out.rows = append(out.rows, row)
	}
	for _, what := range slices.Sorted(maps.Keys(s.attacks)) {
		out.rows = append(out.rows, []string{"attack: " + what, "", fmt.Sprint(s.attacks[what]), "", "", ""})
	}
	return out
}
