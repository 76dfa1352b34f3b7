//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/stasisd/stasis/api"
	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/browser/launch"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/sqldb"
	"github.com/stasisd/stasis/session"
	"github.com/stasisd/stasis/session/claims"
	"github.com/stasisd/stasis/session/cluster"
	"github.com/stasisd/stasis/session/placement"
)

// nodeFlags make the daemon one of several nodes that share a catalogue.
type nodeFlags struct {
	NodeURL webAddress `help:"Where other nodes reach this daemon, such as http://10.0.0.5:8080. With it, the daemon is one of several nodes that share the catalogue of --database postgres://…" name:"node-url" placeholder:"URL"`
	NodeID  string     `help:"The node's ID, of lower-case letters, digits, - and _; by default one that the first start makes and keeps in the data directory." name:"node-id" placeholder:"ID"`

	NodeCAFile string `help:"File with the certificate authorities of nodes whose --node-url is https (PEM); by default the system's." name:"node-ca-file" placeholder:"FILE"`
	Direct     bool   `help:"Name --node-url instead of --public-url in the cdp_url of this node's sessions, so that clients that reach it connect without a hop."`

	ShutdownNotice time.Duration `help:"For how long a node that is stopped still answers calls after /readyz has failed, so that load balancers leave it out." default:"5s"`
}

// nodeFile is the file of the node's ID in the data directory.
const nodeFile = "node-id"

// runFolder is the folder of live sessions in the data directory.
const runFolder = "run"

// check refuses flags that cannot work. database is --database.
func (f nodeFlags) check(database string) error {
	const op = "serve.node"
	if f.NodeURL == "" {
		if f.NodeID != "" || f.NodeCAFile != "" || f.Direct {
			return fault.New(fault.Config, op, "--node-id, --node-ca-file, --direct: need --node-url")
		}
		return nil
	}
	u, err := f.NodeURL.parse("--node-url")
	if err != nil {
		return err
	}
	if u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return fault.New(fault.Config, op, "--node-url: must have no path, no query and no fragment")
	}
	if !sqldb.Remote(database) {
		return fault.New(fault.Config, op, "--node-url: nodes share a catalogue in PostgreSQL; give --database postgres://…")
	}
	if f.NodeID != "" && !validNodeID(f.NodeID) {
		return fault.New(fault.Config, op, "--node-id: must be 1 to 128 of lower-case letters, digits, - and _")
	}
	_, err = f.roots()
	return err
}

func (f nodeFlags) on() bool { return f.NodeURL != "" }

func validNodeID(id string) bool {
	return id != "" && len(id) <= 128 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// id returns the node's ID and keeps it in the data directory. The first start makes one. The
// folders of a node's sessions are named only in the catalogue, under its ID: another node would
// find nothing there about them, and remove them.
func (f nodeFlags) id(dir string) (string, error) {
	const op = "serve.node"
	file := filepath.Join(dir, nodeFile)
	raw, err := os.ReadFile(file)
	kept := strings.TrimSpace(string(raw))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return "", fault.Wrap(err, fault.Config, op, "the file of the node's ID cannot be read")
	case !validNodeID(kept):
		return "", fault.New(fault.Config, op, "%s: contains no valid node ID; remove the file, and the next start makes a new one", file)
	case f.NodeID == "" || f.NodeID == kept:
		return kept, nil
	}
	if left, err := os.ReadDir(filepath.Join(dir, runFolder)); kept != "" && err == nil && len(left) > 0 {
		return "", fault.New(fault.Config, op, "--node-id: the data directory has sessions of node %s; start it once under that ID, which saves them, or give another --data-dir", kept)
	}
	id := cmp.Or(f.NodeID, profiles.NewID())
	if err := renameio.WriteFile(file, []byte(id+"\n"), 0o600); err != nil {
		return "", fault.Wrap(err, fault.Config, op, "the file of the node's ID cannot be written")
	}
	return id, nil
}

// node is the daemon as one of several nodes; nil: it is none.
type node struct {
	keeper   *cluster.Keeper
	db       *sqldb.DB
	sessions *session.NodeSessions // nil until begin
	urlCheck *forward.URLCheck     // nil until begin
}

// deadline returns the deadline of a node's Chromes; nil if the daemon is none.
func (f nodeFlags) deadline() *launch.Deadline {
	if !f.on() {
		return nil
	}
	return &launch.Deadline{}
}

// join takes the node's lease; nil if the daemon is no node. It refuses secrets that differ from
// those of the other nodes.
func (f nodeFlags) join(ctx context.Context, d *storage, facts placement.Facts, own claims.Fingerprints, deadline *launch.Deadline, log *slog.Logger) (*node, error) {
	if !f.on() {
		return nil, nil
	}
	id, err := f.id(d.dir)
	if err != nil {
		return nil, err
	}
	compare := func() error { return own.Compare(ctx, id, d.catalogue.Nodes.Nodes, profiles.LeaseTime) }
	if err := compare(); err != nil {
		return nil, err
	}
	url := strings.TrimSuffix(string(f.NodeURL), "/")
	facts.URLMAC = d.signer(id).URLMAC(id, url)
	keeper, err := cluster.Join(ctx, cluster.Config{Store: d.catalogue.Nodes, ID: id, URL: url,
		Facts:  facts,
		Extend: deadline.Extend, Clock: launch.BootTime, Now: time.Now, Log: log})
	if err != nil {
		return nil, err
	}
	if err := compare(); err != nil { // of two that start at once, one is refused
		return nil, errors.Join(err, keeper.Close(ctx, true))
	}
	return &node{keeper: keeper, db: d.catalogue}, nil
}

// join adds the node to what a service uses.
func (n *node) join(d *session.Deps) {
	if n != nil {
		d.Node, d.Left = n.keeper, n.db.Left
	}
}

// begin begins to take over other nodes, when those sessions were found that a former process of
// this node left. others are the nodes to which sessions can move.
func (n *node) begin(s *session.Service, others *api.Cluster, log *slog.Logger) {
	if n == nil {
		return
	}
	n.sessions = session.Nodes(s, takeovers{n.db.Nodes, n.db.Left}, forward.NewMover(others.Peers, others.Forwarder))
	others.Take, others.Give = n.sessions.Take, n.sessions.Give
	n.urlCheck = forward.NewURLCheck(others.Peers, others.Forwarder, 0, log)
	n.keeper.Begin(n.sessions)
}

// checkURL tries whether other nodes reach this one, when it answers calls. The result ends that and
// waits for the end.
func (n *node) checkURL(ctx context.Context) (stop func()) {
	if n == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var checking sync.WaitGroup
	checking.Go(func() { n.urlCheck.Run(ctx) })
	return func() {
		cancel()
		checking.Wait()
	}
}

// leave moves the live sessions to other nodes before the daemon stops. Those that stay when ctx
// ends are still live.
func (n *node) leave(ctx context.Context) {
	if n.sessions == nil {
		return
	}
	n.keeper.Leave(ctx)
	n.sessions.Leave(ctx)
}

// id returns the node's ID; "": the daemon is no node.
func (n *node) id() string {
	if n == nil {
		return ""
	}
	return n.keeper.ID()
}

// close ends the lease if all sessions have ended. Otherwise it ends by itself, and other nodes
// take over.
func (n *node) close(ctx context.Context, ended bool) error {
	if n == nil {
		return nil
	}
	return n.keeper.Close(ctx, ended)
}

// lease describes the lease for /readyz; nil: there is none.
func (n *node) lease() func() api.Lease {
	if n == nil {
		return nil
	}
	return func() api.Lease {
		return api.Lease{NodeID: n.keeper.ID(), State: string(n.keeper.State()), Left: n.keeper.Left(), Draining: n.keeper.Draining(), Leads: n.keeper.Leads()}
	}
}

// takeovers are the records of takeovers.
type takeovers struct {
	*sqldb.Nodes
	*sqldb.Left
}
