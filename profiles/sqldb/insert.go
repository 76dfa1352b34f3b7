package sqldb

import (
	"context"
	"strings"
)

// chunks are how many rows one statement adds, the most first. There are few, because a
// connection keeps each statement that it has prepared. SQLite takes 32,766 parameters.
var chunks = [...]int{64, 16, 4, 1}

// insertRows adds rows with few statements. into is the statement up to its VALUES; values
// returns the values of a row.
func insertRows[T any](ctx context.Context, q querier, into string, rows []T, values func(*T) []any) error {
	for _, n := range chunks {
		for len(rows) >= n {
			var args []any
			width := 0
			for i := range rows[:n] {
				args = append(args, values(&rows[i])...)
				if i == 0 {
					width = len(args)
				}
			}
			one := "(?" + strings.Repeat(", ?", width-1) + ")"
			if _, err := q.ExecContext(ctx, into+" VALUES "+one+strings.Repeat(", "+one, n-1), args...); err != nil {
				return err
			}
			rows = rows[n:]
		}
	}
	return nil
}
