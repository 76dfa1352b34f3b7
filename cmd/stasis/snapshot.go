package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"text/tabwriter"
	"time"
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

// remoteSnapshot is the part of a snapshot that is printed.
type remoteSnapshot struct {
	ID        string
	SessionID string `json:"session_id"`
	UserID    string `json:"user_id"`
	Mode      string
	Label     string
	CreatedAt time.Time `json:"created_at"`
	SizeBytes int64     `json:"size_bytes"`
}

// snapshots calls each for every page of a user's snapshots, newest first. user "" means
// all users that the key may act for.
func (r *remoteDaemon) snapshots(ctx context.Context, user string, each func(page []remoteSnapshot) error) error {
	query := url.Values{"limit": {"1000"}}
	if user != "" {
		query.Set("user_id", user)
	}
	for {
		var page struct {
			Snapshots []remoteSnapshot
			NextToken *string `json:"next_token"`
		}
		if err := r.call(ctx, http.MethodGet, "/v1/snapshots?"+query.Encode(), nil, &page); err != nil {
			return err
		}
		if err := each(page.Snapshots); err != nil {
			return err
		}
		if page.NextToken == nil {
			return nil
		}
		query.Set("start_after", *page.NextToken)
	}
}

type snapshotListCmd struct {
	remoteDaemon
	User string `help:"List only this user's snapshots; by default those of all users that the key may act for." env:"-"`
}

// Run prints a line for each snapshot: its ID, when it was made, its mode, the bytes of its
// archive, its user, its session and its label.
func (c *snapshotListCmd) Run(ctx context.Context) error {
	return c.snapshots(ctx, c.User, func(page []remoteSnapshot) error {
		table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
		for _, s := range page {
			label := s.Label
			if label != "" {
				label = strconv.Quote(label)
			}
			if _, err := fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", s.ID, s.CreatedAt.Format(time.RFC3339), s.Mode,
				s.SizeBytes, strconv.Quote(s.UserID), s.SessionID, label); err != nil {
				return err
			}
		}
		return table.Flush()
	})
}
