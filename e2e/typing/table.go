package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// row identifies a row of a table.
type row struct{ path, client, engine string }

// tally is how many fields were tried, and how many of them are empty or short.
type tally struct{ tried, lost int }

// table has the result of each row.
type table map[row]tally

func (t table) add(r row, tried, lost int) {
	t[r] = tally{t[r].tried + tried, t[r].lost + lost}
}

// lost returns the sum of lost fields over all rows.
func (t table) lost() int { return t.sum().lost }

func (t table) sum() tally {
	var all tally
	for _, n := range t {
		all.tried += n.tried
		all.lost += n.lost
	}
	return all
}

// String formats the table in Markdown, with a row for the sum.
func (t table) String() string {
	var b strings.Builder
	b.WriteString("| session | client | engine | tried | lost |\n|---|---|---|---|---|\n")
	rows := slices.SortedFunc(maps.Keys(t), func(a, b row) int {
		return cmp.Or(cmp.Compare(a.engine, b.engine), cmp.Compare(a.path, b.path), cmp.Compare(a.client, b.client))
	})
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %d |\n", r.path, r.client, r.engine, t[r].tried, t[r].lost)
	}
	all := t.sum()
	fmt.Fprintf(&b, "| all | | | %d | %d |\n", all.tried, all.lost)
	return b.String()
}
