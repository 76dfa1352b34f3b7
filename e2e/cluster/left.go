package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// leftDeadline is how long nodes may take to remove what a fault has left, without load.
const leftDeadline = time.Minute

// left waits until nothing is left except what the kept sessions have, and returns what is.
func (r *run) left(ctx context.Context) ([]string, error) {
	within, cancel := context.WithTimeout(ctx, leftDeadline)
	defer cancel()
	for {
		left, err := r.leftNow(ctx)
		if err != nil || len(left) == 0 {
			return left, err
		}
		if sleep(within, time.Second/2) != nil {
			return left, ctx.Err()
		}
	}
}

// leftNow compares the catalogue, the processes, the files and the store with the sessions that
// should live.
func (r *run) leftNow(ctx context.Context) ([]string, error) {
	var left []string
	live, err := r.watch.query(ctx, "SELECT node_id, run_dir, session_id, status FROM sessions WHERE ended_at = 0")
	if err != nil {
		return nil, err
	}
	expected := map[place]bool{}
	for _, row := range live {
		if !slices.Contains(r.kept, row[2]) {
			left = append(left, fmt.Sprintf("session %s, which nobody uses, is %s on node %s", row[2], row[3], row[0]))
		}
		expected[place{row[0], row[1]}] = true
	}
	chromes := r.watch.chromes()
	for p := range chromes {
		if !expected[p] {
			left = append(left, fmt.Sprintf("a Chrome of node %s in %s", p.node, p.dir))
		}
	}
	for p := range expected {
		if chromes[p] == "" {
			left = append(left, fmt.Sprintf("the session in %s of node %s lives without a Chrome", p.dir, p.node))
		}
	}
	files, err := r.leftFiles(expected)
	if err != nil {
		return nil, err
	}
	left = append(left, files...)
	claims, err := r.leftClaims(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := r.Store.Uploads(ctx)
	for _, name := range parts {
		left = append(left, "an upload in parts of "+name)
	}
	return append(left, claims...), err
}

// leftFiles returns the run directories and spooled archives that belong to no session that lives.
// Each of these sessions has a second directory, with the copy of its files that its next
// checkpoint begins with (session/save/replica.go).
func (r *run) leftFiles(expected map[place]bool) (left []string, err error) {
	for _, n := range r.Nodes {
		entries, err := os.ReadDir(filepath.Join(n.Dir, "run"))
		if err != nil {
			return nil, err
		}
		lives, others := 0, []string{}
		for _, e := range entries {
			if expected[place{n.ID, e.Name()}] {
				lives++
			} else {
				others = append(others, "run/"+e.Name()+" on node "+n.ID)
			}
		}
		left = append(left, others[min(lives, len(others)):]...)
		spooled, err := os.ReadDir(filepath.Join(n.Dir, "spool"))
		if err != nil {
			return nil, err
		}
		for _, e := range spooled {
			left = append(left, "spool/"+e.Name()+" on node "+n.ID)
		}
	}
	return left, nil
}

// locks are the records by which nodes hold something, of nodes that have their lease. Those of
// leases that have ended count for nothing, and a sweep removes them.
var locks = map[string]string{
	"the claim of session":          "SELECT c.session_id FROM session_claims c JOIN nodes n ON (n.node_id, n.number) = (c.node_id, c.number) WHERE c.session_id NOT IN (SELECT session_id FROM sessions WHERE ended_at = 0)",
	"the waiting create":            "SELECT w.waiter_id FROM waiting_creates w JOIN nodes n ON (n.node_id, n.number) = (w.node_id, w.number) WHERE w.turn = 0",
	"the hold of snapshot":          "SELECT h.snapshot_id || ' for ' || h.purpose FROM snapshot_holds h JOIN nodes n ON (n.node_id, n.number) = (h.node_id, h.number)",
	"the use of archive":            "SELECT u.archive_id || ' by ' || u.snapshot_id FROM archive_uses u JOIN nodes n ON (n.node_id, n.number) = (u.node_id, u.number)",
	"the login check of":            "SELECT encode(c.user_id, 'escape') FROM check_claims c JOIN nodes n ON (n.node_id, n.number) = (c.node_id, c.number)",
	"the request without an answer": "SELECT request_key FROM answers WHERE status = 0",
	"what a lost node has of":       "SELECT session_id || ' in ' || run_dir || ' on ' || node_id FROM left_sessions",
	"the old use of archive":        "SELECT archive_id || ' by ' || snapshot_id FROM archive_uses WHERE snapshot_id <> '' AND created_at < (extract(epoch FROM now()) - 3600) * 1000",
}

func (r *run) leftClaims(ctx context.Context) (left []string, err error) {
	for what, query := range locks {
		rows, err := r.watch.query(ctx, query)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		for _, row := range rows {
			left = append(left, what+" "+strings.Join(row, " "))
		}
	}
	return left, nil
}
