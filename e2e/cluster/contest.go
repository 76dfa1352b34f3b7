package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// contestUser is the user whose default all nodes move.
const contestUser = "contest"

// contestPause is the time between two moves that a node tries.
const contestPause = 300 * time.Millisecond

// contest has every node move one default with if_version. Each node has its own snapshot, so
// that the history says which of them has moved it.
type contest struct {
	*run
	snapshots []string // by node

	mu       sync.Mutex
	won      map[int64]int            // the node that was answered 200, by version
	lost     map[int64]map[int]bool   // the nodes that were answered 409
	tried    map[int64]map[int]string // the nodes that asked, with what they were answered
	examined int64                    // the newest version that was examined
	wrong    []string
}

// newContest makes the snapshots.
func newContest(ctx context.Context, r *run) (*contest, error) {
	c := &contest{run: r, won: map[int64]int{}, lost: map[int64]map[int]bool{}, tried: map[int64]map[int]string{}}
	for i := range r.Nodes {
		id := fmt.Sprint("contest-", i)
		var made rig.Session
		if err := r.API().Call(ctx, http.MethodPost, "/v1/sessions", map[string]any{"session_id": id, "user_id": contestUser}, &made); err != nil {
			return nil, err
		}
		snapshot, err := r.API().End(ctx, id, "filesystem")
		if err != nil {
			return nil, err
		}
		r.saves.add(saved{id: snapshot, session: id})
		c.snapshots = append(c.snapshots, snapshot)
	}
	return c, nil
}

// caller calls the API, as [rig.Daemon.Call] does.
type caller func(ctx context.Context, method, path string, body, out any) error

// step moves the default to a node's snapshot from the version that is said to be the newest.
func (c *contest) step(ctx context.Context, node int, call caller) {
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	path := "/v1/users/" + contestUser + "/default"
	var now struct{ Version int64 }
	err := call(ctx, http.MethodGet, path, nil, &now)
	var refused *rig.Refused
	if err != nil && (!errors.As(err, &refused) || refused.Status != http.StatusNotFound) {
		return
	}
	version := now.Version + 1
	var moved struct {
		Version  int64
		Snapshot string `json:"snapshot_id"`
	}
	err = call(ctx, http.MethodPut, path, map[string]any{"snapshot_id": c.snapshots[node], "if_version": now.Version}, &moved)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tried[version] == nil {
		c.tried[version], c.lost[version] = map[int]string{}, map[int]bool{}
	}
	c.tried[version][node] = fmt.Sprint(err)
	switch {
	case err == nil:
		if by, again := c.won[version]; again {
			c.wrong = append(c.wrong, fmt.Sprintf("version %d: nodes %d and %d were both answered that they moved it", version, by, node))
		}
		c.won[version] = node
		if moved.Version != version || moved.Snapshot != c.snapshots[node] {
			c.wrong = append(c.wrong, fmt.Sprintf("version %d: node %d was answered %+v", version, node, moved))
		}
	case errors.As(err, &refused) && refused.Code == "version_conflict":
		c.lost[version][node] = true
	}
}

// examine compares the history since the last time with the answers. It returns the moves by
// somebody who had lost, or that no history has, and the number of moves.
func (c *contest) examine(ctx context.Context) (wrong []string, moves int, err error) {
	history, err := c.history(ctx, contestUser, c.examined)
	if err != nil {
		return nil, 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wrong, c.wrong = c.wrong, nil
	newest := c.examined
	for version, snapshot := range history {
		newest = max(newest, version)
		by := -1
		for node, own := range c.snapshots {
			if own == snapshot {
				by = node
			}
		}
		winner, answered := c.won[version]
		switch {
		case by < 0 || c.tried[version][by] == "":
			wrong = append(wrong, fmt.Sprintf("version %d has the snapshot %s, which nobody asked for", version, snapshot))
		case answered && winner != by:
			wrong = append(wrong, fmt.Sprintf("version %d: node %d was answered that it moved it, but the history has node %d", version, winner, by))
		case c.lost[version][by] && !answered:
			wrong = append(wrong, fmt.Sprintf("version %d was moved by node %d, which was answered that it had lost", version, by))
		}
	}
	for version := range c.won {
		if version > c.examined && history[version] == "" {
			wrong = append(wrong, fmt.Sprintf("version %d was confirmed and is not in the history", version))
		}
	}
	c.examined = newest
	return wrong, len(history), nil
}

// history returns the snapshots of a default's versions that are newer than one.
func (r *run) history(ctx context.Context, user string, after int64) (map[int64]string, error) {
	found := map[int64]string{}
	for next := ""; ; {
		var page struct {
			History []struct {
				Version  int64
				Snapshot string `json:"snapshot_id"`
			}
			Next *string `json:"next_token"`
		}
		path := "/v1/users/" + user + "/default/history?limit=1000"
		if next != "" {
			path += "&start_after=" + next
		}
		var refused *rig.Refused
		if err := r.API().Call(ctx, http.MethodGet, path, nil, &page); errors.As(err, &refused) && refused.Status == http.StatusNotFound {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		for _, h := range page.History {
			if h.Version <= after {
				return found, nil
			}
			if found[h.Version] != "" {
				return nil, fmt.Errorf("version %d of the default of %s is there twice", h.Version, user)
			}
			found[h.Version] = h.Snapshot
		}
		if page.Next == nil || len(page.History) == 0 {
			return found, nil
		}
		next = *page.Next
	}
}
