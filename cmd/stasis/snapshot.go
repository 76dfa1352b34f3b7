package main

import (
	"context"
)

// snapshotCmd holds the verbs for the snapshots of a running daemon.
type snapshotCmd struct {
	List   snapshotListCmd   `cmd:"" help:"List snapshots, newest first."`
	Prune  snapshotPruneCmd  `cmd:"" help:"Remove the snapshots that the retention policies do not keep."`
	Diff   snapshotDiffCmd   `cmd:"" help:"Show what changed from one snapshot to another, without values."`
	Verify snapshotVerifyCmd `cmd:"" help:"Read snapshots completely and report which are damaged."`
	Export snapshotExportCmd `cmd:"" help:"Write a snapshot to one sealed file."`
	Import snapshotImportCmd `cmd:"" help:"Make a snapshot from an exported file or from another tool's file."`
}

type snapshotListCmd struct {
	remoteDaemon
	printed
	User string `help:"List only this user's snapshots; by default those of all users that the key may act for." env:"-"`
}

// Run prints a line for each snapshot, its ID first. The size is that of its archive.
func (c *snapshotListCmd) Run(ctx context.Context) error {
	list, err := take(0, c.api().Snapshots(ctx, c.User))
	if err != nil {
		return c.explain(err)
	}
	return c.print(list, func() error {
		t := newTable("ID", "CREATED", "MODE", "SIZE", "USER", "SESSION", "LABEL")
		for _, s := range list {
			t.row(s.ID, local(&s.CreatedAt), s.Mode, size(s.SizeBytes), s.UserID, s.SessionID, s.Label)
		}
		return t.Flush()
	})
}
