package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

type snapshotPruneCmd struct {
	remoteDaemon
	User   string `help:"The user whose snapshots are pruned; by default the key's own user." xor:"whose" env:"-"`
	All    bool   `help:"Prune the snapshots of all users; the key needs the right admin." xor:"whose" env:"-"`
	DryRun bool   `help:"Remove nothing; print what would be removed, and why the rest is kept." env:"-"`
}

// Run prints a line for each snapshot that was removed, or would be, its ID first. A dry
// run also prints the snapshots that are kept, with the reasons.
func (c *snapshotPruneCmd) Run(ctx context.Context) error {
	ask := map[string]any{"all": c.All, "dry_run": c.DryRun}
	if c.User != "" {
		ask["user_id"] = c.User
	}
	type snapshot struct {
		remoteSnapshot
		Reasons []string
	}
	var answer struct {
		RemovedCount int            `json:"removed_count"`
		FreedBytes   int64          `json:"freed_bytes"`
		KeptCount    int            `json:"kept_count"`
		KeptBy       map[string]int `json:"kept_by"`
		Removed      []snapshot
		Kept         []snapshot
	}
	if err := c.callJSON(ctx, http.MethodPost, "/v1/prune", ask, &answer); err != nil {
		return err
	}
	went, which := "removed", "removed"
	if c.DryRun {
		went, which = "would be removed", "that would be removed"
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, s := range append(answer.Removed, answer.Kept...) {
		said := went
		if len(s.Reasons) > 0 {
			said = "kept: " + strings.Join(s.Reasons, ", ")
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", s.ID, s.CreatedAt.Format(time.RFC3339), s.SizeBytes, strconv.Quote(s.UserID), said); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	var reasons []string
	for _, reason := range slices.Sorted(maps.Keys(answer.KeptBy)) {
		reasons = append(reasons, fmt.Sprintf("%s %d", reason, answer.KeptBy[reason]))
	}
	summary := fmt.Sprintf("snapshots %s: %d, with archives of %d bytes; kept: %d", which, answer.RemovedCount, answer.FreedBytes, answer.KeptCount)
	if len(reasons) > 0 {
		summary += ", by reason: " + strings.Join(reasons, ", ")
	}
	_, err := fmt.Fprintln(os.Stderr, summary)
	return err
}
