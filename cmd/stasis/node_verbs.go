package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/stasisd/stasis/client"
	"github.com/stasisd/stasis/fault"
)

// nodeCmd holds the verbs for the nodes of a cluster.
type nodeCmd struct {
	List   nodeListCmd   `cmd:"" help:"List the nodes that share the catalogue of a running daemon."`
	Drain  nodeDrainCmd  `cmd:"" help:"Move the sessions of a node to others and place no new ones on it, or with --undo place them again."`
	Remove nodeRemoveCmd `cmd:"" help:"Remove a node that has stopped from the list."`
}

type nodeListCmd struct {
	remoteDaemon
	printed
}

// Run prints a line for each node.
func (c *nodeListCmd) Run(ctx context.Context) error {
	nodes, err := c.api().Nodes(ctx)
	if err != nil {
		return c.explain(err)
	}
	if nodes == nil {
		nodes = []client.Node{}
	}
	return c.print(nodes, func() error {
		t := newTable("ID", "STATE", "ANSWERS", "LIVE", "FREE", "WAITING", "STARTED", "VERSION", "URL")
		for _, n := range nodes {
			t.row(printable(n.ID), n.State, hasAnswered(n), strconv.Itoa(n.Live), strconv.Itoa(n.Free), strconv.Itoa(n.Waiting), local(&n.StartedAt), n.Version, printable(n.URL))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		for _, n := range nodes {
			for _, s := range n.Staying {
				if _, err := fmt.Fprintf(os.Stdout, "%s stays on node %s: %s\n", printable(s.SessionID), printable(n.ID), printable(s.Reason)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// hasAnswered returns whether a node has answered the one that lists it.
func hasAnswered(n client.Node) string {
	switch {
	case n.Answers == nil:
		return "-"
	case *n.Answers:
		return "yes"
	}
	return "no"
}

type nodeDrainCmd struct {
	remoteDaemon
	Undo bool          `help:"The node takes new sessions again." env:"-" xor:"undo"`
	Wait time.Duration `help:"Wait until the node has no live sessions but those that cannot move, at most this long." env:"-" placeholder:"DURATION" xor:"undo"`
	ID   string        `arg:"" help:"The node's ID."`
}

const (
	drainLook = time.Second
	// drainedFor is how long a node must report that it has nothing to move: it reports what it
	// has every five seconds.
	drainedFor = 6 * time.Second
)

// Run drains the node.
func (c *nodeDrainCmd) Run(ctx context.Context) error {
	if c.Wait < 0 {
		return fault.New(fault.Config, "node.drain", "--wait: must not be negative")
	}
	if err := c.api().DrainNode(ctx, c.ID, !c.Undo); err != nil {
		return c.explain(err)
	}
	text := "Node %s takes no new sessions within a few seconds, and moves its live ones to other nodes.\n`stasis node list` shows how many are left, and names those that cannot move.\n"
	if c.Undo {
		text = "Node %s takes new sessions again within a few seconds.\n"
	}
	if _, err := fmt.Fprintf(os.Stdout, text, printable(c.ID)); err != nil || c.Wait == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	return c.await(ctx)
}

// await waits until the node has no sessions that can move, or has stopped.
func (c *nodeDrainCmd) await(ctx context.Context) error {
	var last client.Node
	var drained time.Duration
	for {
		nodes, err := c.api().Nodes(ctx)
		at := slices.IndexFunc(nodes, func(n client.Node) bool { return n.ID == c.ID })
		switch {
		case err != nil && ctx.Err() == nil:
			return c.explain(err)
		case err == nil && (at < 0 || nodes[at].State == "stopped"):
			return nil
		case err == nil:
			last = nodes[at]
			drained += drainLook
			if last.Live > len(last.Staying) {
				drained = 0
			}
		}
		if drained > drainedFor {
			_, err := fmt.Fprintf(os.Stdout, "Live sessions that stay on node %s: %d.\n", printable(c.ID), last.Live)
			return err
		}
		select {
		case <-ctx.Done():
			return fault.New(fault.Timeout, "node.drain", "live sessions that are left on node %s: %d; it moves them as long as it runs", c.ID, last.Live)
		case <-time.After(drainLook):
		}
	}
}

type nodeRemoveCmd struct {
	remoteDaemon
	ID string `arg:"" help:"The node's ID."`
}

// Run removes the node.
func (c *nodeRemoveCmd) Run(ctx context.Context) error {
	if err := c.api().RemoveNode(ctx, c.ID); err != nil {
		return c.explain(err)
	}
	_, err := fmt.Fprintf(os.Stdout, "Node %s is removed.\n", printable(c.ID))
	return err
}
