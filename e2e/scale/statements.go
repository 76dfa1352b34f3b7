package main

import (
	"context"
	"strings"
)

// statement is how often the server ran a statement, and how long that took, since
// forget.
type statement struct {
	text  string
	calls int64
	took  float64 // milliseconds
}

// forget lets the server count statements anew. The server must have been started with
// pg_stat_statements.
func (o *observer) forget(ctx context.Context) error {
	if _, err := o.conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements"); err != nil {
		return err
	}
	_, err := o.conn.Exec(ctx, "SELECT pg_stat_statements_reset()")
	return err
}

// statements returns what the server has counted, the longest in all first.
func (o *observer) statements(ctx context.Context) (all []statement, err error) {
	rows, err := o.conn.Query(ctx, "SELECT query, calls, total_exec_time FROM pg_stat_statements WHERE toplevel ORDER BY total_exec_time DESC LIMIT 60")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s statement
		if err := rows.Scan(&s.text, &s.calls, &s.took); err != nil {
			return nil, err
		}
		s.text = strings.Join(strings.Fields(s.text), " ")
		all = append(all, s)
	}
	return all, rows.Err()
}

// printStatements prints how often each statement ran for a create and an end, and how many
// microseconds it took each time.
func (o *observer) printStatements(ctx context.Context, l step) error {
	all, err := o.statements(ctx)
	if err != nil {
		return err
	}
	for _, t := range since(l.before.transactions, l.after.transactions) {
		progress("%6.2f transactions %-32s tried again %5.1f %%", l.each(t.times), t.op, 100*float64(t.conflicts)/float64(t.times))
	}
	for _, s := range all {
		progress("%6.2f x %6.0f us %.150s", l.each(int(s.calls)), 1000*s.took/float64(s.calls), s.text)
	}
	return nil
}

// each divides a count by the number of creates.
func (s step) each(n int) float64 { return float64(n) / float64(max(s.creates.Count, 1)) }
