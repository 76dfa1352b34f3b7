package main

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/stasisd/stasis/client"
)

type snapshotDiffCmd struct {
	remoteDaemon
	printed
	From string `arg:"" help:"The ID of a snapshot."`
	To   string `arg:"" help:"The ID of the snapshot to compare it with."`
}

// Run prints a line for each kind and origin that differs: + added, - removed, ~ changed. Values
// are not shown.
func (c *snapshotDiffCmd) Run(ctx context.Context) error {
	var d client.Diff
	path := "/v1/snapshots/" + url.PathEscape(c.From) + "/diff/" + url.PathEscape(c.To)
	return c.show(ctx, &c.remoteDaemon, http.MethodGet, path, nil, &d, func() error {
		t := newTable("KIND", "ORIGIN", "BEFORE", "AFTER", "NAMES")
		for _, x := range d.Changes {
			names := append(append(marked("+", x.Added), marked("-", x.Removed)...), marked("~", x.Changed)...)
			t.row(x.Name, x.Origin, strconv.Itoa(x.Before), strconv.Itoa(x.After), strings.Join(names, " "))
		}
		for _, x := range d.NotCompared {
			t.row(x.Name, x.Origin, "", "", "not compared: "+x.Reason)
		}
		return t.Flush()
	})
}

// marked puts a mark before each name.
func marked(mark string, names []string) []string {
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, mark+n)
	}
	return out
}
