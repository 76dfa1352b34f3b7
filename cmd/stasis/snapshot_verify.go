package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/stasisd/stasis/client"
	"github.com/stasisd/stasis/fault"
)

type snapshotVerifyCmd struct {
	remoteDaemon
	All bool     `help:"Verify every snapshot of every user that the key may act for." env:"-"`
	IDs []string `arg:"" optional:"" name:"id" help:"IDs of snapshots."`
}

// verifyCounts counts the results of verifications.
type verifyCounts struct{ ok, damaged, failed int }

// Run prints a line for each snapshot, its ID first, as soon as it is verified. If one
// cannot be verified, Run continues with the others.
func (c *snapshotVerifyCmd) Run(ctx context.Context) error {
	if c.All == (len(c.IDs) > 0) {
		return exitError{exitUsage, "id: name the snapshots to verify, or give --all"}
	}
	var sum verifyCounts
	err := c.each(ctx, func(id string) error { return c.verify(ctx, id, &sum) })
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(os.Stderr, "%d ok, %d damaged, %d not verified\n", sum.ok, sum.damaged, sum.failed); err != nil {
		return err
	}
	switch {
	case sum.damaged > 0:
		return exitError{exitDamaged, "there are damaged snapshots"}
	case sum.failed > 0:
		return exitError{exitFailed, "not all snapshots could be verified"}
	}
	return nil
}

// each calls do with the ID of every requested snapshot.
func (c *snapshotVerifyCmd) each(ctx context.Context, do func(id string) error) error {
	for _, id := range c.IDs {
		if err := do(id); err != nil {
			return err
		}
	}
	if !c.All {
		return nil
	}
	return c.snapshots(ctx, "", func(page []remoteSnapshot) error {
		for _, s := range page {
			if err := do(s.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *snapshotVerifyCmd) verify(ctx context.Context, id string, sum *verifyCounts) error {
	var found struct {
		OK       bool
		Problems []client.Error
	}
	err := c.call(ctx, http.MethodPost, "/v1/snapshots/"+url.PathEscape(id)+"/verify", nil, &found)
	var refused *client.Error
	said := "ok"
	switch {
	case errors.As(err, &refused) && refused.Code == string(fault.SnapshotNotFound) && c.All:
		return nil // it was deleted after it was listed
	case errors.As(err, &refused):
		sum.failed++
		said = "not verified: " + refused.Error()
	case err != nil:
		return err
	case found.OK:
		sum.ok++
	default:
		sum.damaged++
		said = "damaged"
		for _, p := range found.Problems {
			said += ": " + p.Message
		}
	}
	_, err = fmt.Printf("%s  %s\n", id, said)
	return err
}
