package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// printed is the output of a verb: for people, or with --json what the daemon answered.
type printed struct {
	JSON bool `help:"Print the daemon's answer as JSON, for programs." name:"json" env:"-"`
}

// show makes a call. With --json it prints the answer, else it decodes the answer into out and
// calls people.
func (p printed) show(ctx context.Context, r *remoteDaemon, method, path string, in, out any, people func() error) error {
	var raw json.RawMessage
	if err := r.callJSON(ctx, method, path, in, &raw); err != nil {
		return err
	}
	if p.JSON {
		return printJSON(raw)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return err
	}
	return people()
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

// row adds a row. Its texts come from callers and pages, so control characters are quoted. An
// error shows in Flush.
func (t table) row(cells ...string) {
	for i, c := range cells {
		if strings.ContainsFunc(c, func(r rune) bool { return !strconv.IsPrint(r) }) {
			cells[i] = strconv.Quote(c)
		}
	}
	_, _ = fmt.Fprintln(t, strings.Join(cells, "\t"))
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
