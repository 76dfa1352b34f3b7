package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// row names a line of a table.
type row struct{ way, client, engine string }

// tally is how many fields were typed into, and how many of them are not whole.
type tally struct{ tried, lost int }

// table is what came of each row.
type table map[row]tally

func (t table) add(r row, tried, lost int) {
	t[r] = tally{t[r].tried + tried, t[r].lost + lost}
}

// lost is the sum over all rows.
func (t table) lost() int { return t.sum().lost }

func (t table) sum() tally {
	var all tally
	for _, n := range t {
		all.tried += n.tried
		all.lost += n.lost
	}
	return all
}

// String is the table in Markdown, with a line for the sum.
func (t table) String() string {
	var b strings.Builder
	b.WriteString("| way | client | engine | tried | lost |\n|---|---|---|---|---|\n")
	rows := slices.SortedFunc(maps.Keys(t), func(a, b row) int {
		return cmp.Or(cmp.Compare(a.engine, b.engine), cmp.Compare(a.way, b.way), cmp.Compare(a.client, b.client))
	})
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d |\n", r.way, r.client, r.engine, t[r].tried, t[r].lost)
	}
	all := t.sum()
	fmt.Fprintf(&b, "| all | | | %d | %d |\n", all.tried, all.lost)
	return b.String()
}
