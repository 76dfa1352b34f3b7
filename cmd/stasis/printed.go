package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
)

// printed is the output of a verb: for people, or with --json what the daemon answered.
type printed struct {
	JSON bool `help:"Print JSON, for programs." name:"json" env:"-"`
}

// show makes a call and decodes the answer into out. With --json it prints the answer, else it
// calls people.
func (p printed) show(ctx context.Context, r *remoteDaemon, method, path string, in, out any, people func() error) error {
	var raw json.RawMessage
	if err := r.callJSON(ctx, method, path, in, &raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return err
	}
	return p.print(raw, people)
}

// print prints a value with --json, else it calls people.
func (p printed) print(v any, people func() error) error {
	if p.JSON {
		return printJSON(v)
	}
	return people()
}

// take returns the first items of pages, at most limit; 0 means all.
func take[T any](limit int, pages iter.Seq2[T, error]) ([]T, error) {
	list := []T{} // in JSON [], not null
	for item, err := range pages {
		if err != nil {
			return nil, err
		}
		if list = append(list, item); len(list) == limit {
			break
		}
	}
	return list, nil
}

// printJSON prints a value with indentation.
func printJSON(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(os.Stdout, string(text))
	return err
}

// table prints rows under a heading.
type table struct{ *tabwriter.Writer }

func newTable(heading ...string) table {
	t := table{tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)}
	t.row(heading...)
	return t
}

// row adds a row. Its texts come from callers and pages, so they are made printable. An
// error shows in Flush.
func (t table) row(cells ...string) {
	for i, c := range cells {
		cells[i] = printable(c)
	}
	_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
}

// printable returns a text of somebody else. It quotes one that a terminal would not show
// literally.
func printable(text string) string {
	if quoted := strconv.Quote(text); quoted != `"`+text+`"` {
		return quoted
	}
	return text
}

// fields prints names and values, one in each line, without those that are empty.
func fields(pairs ...string) error {
	t := table{tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			t.row(pairs[i]+":", pairs[i+1])
		}
	}
	return t.Flush()
}

// local formats a time for people of this machine; "" for none.
func local(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// size formats a number of bytes for people.
func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) } //nolint:gosec // it is not negative

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
