package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/stasisd/stasis/client"
)

type snapshotPruneCmd struct {
	remoteDaemon
	printed
	User   string `help:"The user whose snapshots are pruned; by default the key's own user." xor:"whose" env:"-"`
	All    bool   `help:"Prune the snapshots of all users; the key needs the right admin." xor:"whose" env:"-"`
	DryRun bool   `help:"Remove nothing; print what would be removed, and why the rest is kept." env:"-"`
}

// pruneAnswer is the answer to a prune.
type pruneAnswer struct {
	RemovedCount int              `json:"removed_count"`
	FreedBytes   int64            `json:"freed_bytes"`
	KeptCount    int              `json:"kept_count"`
	KeptBy       map[string]int   `json:"kept_by"`
	Removed      []prunedSnapshot `json:"removed"`
	Kept         []prunedSnapshot `json:"kept"` // only of a dry run
}

type prunedSnapshot struct {
	client.Snapshot
	Reasons []string `json:"reasons"` // why it is kept
}

// Run prints a line for each snapshot that was removed, or would be, its ID first. A dry
// run also prints the snapshots that are kept, with the reasons.
func (c *snapshotPruneCmd) Run(ctx context.Context) error {
	ask := map[string]any{"all": c.All, "dry_run": c.DryRun}
	if c.User != "" {
		ask["user_id"] = c.User
	}
	var answer pruneAnswer
	return c.show(ctx, &c.remoteDaemon, http.MethodPost, "/v1/prune", ask, &answer, func() error { return c.people(answer) })
}

// people prints the snapshots, and on standard error their number.
func (c *snapshotPruneCmd) people(answer pruneAnswer) error {
	went, which := "removed", "removed"
	if c.DryRun {
		went, which = "would be removed", "that would be removed"
	}
	t := newTable("ID", "CREATED", "SIZE", "USER", "RESULT")
	for _, s := range append(answer.Removed, answer.Kept...) {
		result := went
		if len(s.Reasons) > 0 {
			result = "kept: " + strings.Join(s.Reasons, ", ")
		}
		t.row(s.ID, local(&s.CreatedAt), size(s.SizeBytes), s.UserID, result)
	}
	if err := t.Flush(); err != nil {
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
