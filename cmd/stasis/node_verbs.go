package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/stasisd/stasis/client"
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
		t := newTable("ID", "STATE", "LIVE", "FREE", "WAITING", "STARTED", "VERSION", "URL")
		for _, n := range nodes {
			t.row(printable(n.ID), n.State, strconv.Itoa(n.Live), strconv.Itoa(n.Free), strconv.Itoa(n.Waiting), local(&n.StartedAt), n.Version, printable(n.URL))
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

type nodeDrainCmd struct {
	remoteDaemon
	Undo bool   `help:"The node takes new sessions again." env:"-"`
	ID   string `arg:"" help:"The node's ID."`
}

// Run drains the node.
func (c *nodeDrainCmd) Run(ctx context.Context) error {
	if err := c.api().DrainNode(ctx, c.ID, !c.Undo); err != nil {
		return c.explain(err)
	}
	text := "Node %s takes no new sessions within a few seconds, and moves its live ones to other nodes.\n`stasis node list` shows how many are left, and names those that cannot move.\n"
	if c.Undo {
		text = "Node %s takes new sessions again within a few seconds.\n"
	}
	_, err := fmt.Fprintf(os.Stdout, text, printable(c.ID))
	return err
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
