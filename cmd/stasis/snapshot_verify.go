package main

import (
	"context"
	"encoding/json"
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
	progressFlag
	JSON bool     `help:"Print one JSON object per line, for each snapshot." name:"json" env:"-"`
	All  bool     `help:"Verify every snapshot of every user that the key may act for." env:"-"`
	IDs  []string `arg:"" optional:"" name:"id" help:"IDs of snapshots."`
}

// verified is the result of a verification.
type verified struct {
	ID string `json:"snapshot_id"`
	client.Verification
	Error *client.Error `json:"error,omitempty"` // why it could not be verified
}

// verifyCounts counts the results of verifications.
type verifyCounts struct{ ok, damaged, failed int }

// Run prints a line for each snapshot, its ID first, as soon as it is verified. If one
// cannot be verified, Run continues with the others.
func (c *snapshotVerifyCmd) Run(ctx context.Context) error {
	if c.All == (len(c.IDs) > 0) {
		return exitError{exitUsage, "id: name the snapshots to verify, or give --all"}
	}
	ids, err := c.ids(ctx)
	if err != nil {
		return err
	}
	sum, err := c.each(ctx, ids)
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

// ids returns the IDs of the snapshots to verify.
func (c *snapshotVerifyCmd) ids(ctx context.Context) ([]string, error) {
	ids := c.IDs
	if c.All {
		for s, err := range c.api().Snapshots(ctx, "") {
			if err != nil {
				return nil, c.explain(err)
			}
			ids = append(ids, s.ID)
		}
	}
	return ids, nil
}

// each verifies snapshots and prints their results.
func (c *snapshotVerifyCmd) each(ctx context.Context, ids []string) (sum verifyCounts, err error) {
	bar := c.items("snapshots", len(ids))
	defer erase(bar)
	for _, id := range ids {
		v, err := c.verify(ctx, id)
		switch {
		case err != nil:
			return sum, err
		case v.Error != nil && v.Error.Code == string(fault.SnapshotNotFound) && c.All:
			continue // it was deleted after it was listed
		case v.Error != nil:
			sum.failed++
		case v.OK:
			sum.ok++
		default:
			sum.damaged++
		}
		_ = bar.Clear()
		if err := c.line(v); err != nil {
			return sum, err
		}
		_ = bar.Add(1)
	}
	return sum, nil
}

// verify verifies a snapshot. A refusal of the daemon is part of the result.
func (c *snapshotVerifyCmd) verify(ctx context.Context, id string) (v verified, err error) {
	err = c.callJSON(ctx, http.MethodPost, "/v1/snapshots/"+url.PathEscape(id)+"/verify", nil, &v)
	if v.ID = id; errors.As(err, &v.Error) {
		return v, nil
	}
	return v, err
}

// line prints a result.
func (c *snapshotVerifyCmd) line(v verified) error {
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(v)
	}
	said := "ok"
	if v.Error != nil {
		said = "not verified: " + v.Error.Error()
	} else if !v.OK {
		said = "damaged"
		for _, p := range v.Problems {
			said += ": " + p.Message
		}
	}
	_, err := fmt.Printf("%s  %s\n", v.ID, said)
	return err
}
