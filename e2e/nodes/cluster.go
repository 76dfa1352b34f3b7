package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
	"github.com/stasisd/stasis/profiles/postgrestest"
	"github.com/stasisd/stasis/snapshot/s3store/s3test"
)

// Cluster is a running cluster.
type Cluster struct {
	Server *postgrestest.Server
	Store  *s3test.Server
	Front  *Front
	Nodes  []*Node
	dir    string // of all files; removed by Close
}

const (
	databasePort = "5432"
	storePort    = "7070"
	frontPort    = "8000"
	nodePort     = "8080"
	// firstUID is the first user of Chromes of any cluster. Each process has its own range, of
	// uidsOfProcess users: a node ends the processes of users whose run directories are left.
	firstUID      = 300_000_000
	uidsOfProcess = 1000
	// readyDeadline is how long a node may take until it answers.
	readyDeadline = time.Minute
)

// Start starts a cluster of n nodes that run a binary with flags of serve. [Enter] was called
// before. The nodes keep no spare Chromes.
func Start(ctx context.Context, binary string, n int, args ...string) (_ *Cluster, err error) {
	c := &Cluster{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close(context.WithoutCancel(ctx)))
		}
	}()
	if c.dir, err = rig.Scratch("sc-"); err != nil {
		return nil, err
	}
	if c.Server, err = postgrestest.Start("max_connections=150"); err != nil {
		return nil, err
	}
	if err := c.Server.Listen(hub); err != nil {
		return nil, err
	}
	if err := c.Server.Exec(ctx, "postgres", "CREATE DATABASE stasis"); err != nil {
		return nil, err
	}
	objects := filepath.Join(c.dir, "objects")
	if err := os.Mkdir(objects, 0o700); err != nil {
		return nil, err
	}
	if c.Store, err = s3test.Run(ctx, hub+":"+storePort, objects); err != nil {
		return nil, err
	}
	var urls []string
	for i := range n {
		node, err := c.newNode(ctx, binary, i, args)
		if err != nil {
			return nil, err
		}
		c.Nodes, urls = append(c.Nodes, node), append(urls, node.URL)
	}
	if c.Front, err = startFront(hub+":"+frontPort, urls); err != nil {
		return nil, err
	}
	return c, c.startAll(ctx)
}

// newNode makes a node that does not run yet.
func (c *Cluster) newNode(ctx context.Context, binary string, number int, args []string) (*Node, error) {
	n := &Node{ID: string(rune('a' + number)), number: number}
	n.Dir = filepath.Join(c.dir, n.ID)
	if err := os.Mkdir(n.Dir, 0o711); err != nil {
		return nil, err
	}
	var err error
	if n.space, err = newSpace(ctx, n.ID, number); err != nil {
		return nil, err
	}
	if n.log, err = os.Create(n.Dir + ".log"); err != nil {
		return nil, err
	}
	at := n.space.address + ":" + nodePort
	n.URL = "http://" + at
	n.daemon = rig.Daemon{
		Binary: binary, Prefix: n.space.enter(), Listen: at, Dir: n.Dir, UIDs: firstUID + os.Getpid()%100_000*uidsOfProcess + number*rig.UIDCount, Log: n.log,
		Env: []string{"STASIS_DATABASE=" + c.Server.URLAt(hub, "stasis"), "AWS_ACCESS_KEY_ID=" + s3test.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s3test.SecretKey, "STASIS_STORE=" + c.Store.URL("stasis")},
		Args: append([]string{"--node-url", n.URL, "--node-id", n.ID, "--public-url", "http://" + hub + ":" + frontPort,
			"--shutdown-notice", "2s", "--insecure-listen", "--allow-private", hub, "--engine", "shell", "--no-preflight",
			"--spares", "0", "--shell-spares", "0", "--standby", "0", "--parked", "0"}, args...),
	}
	return n, nil
}

// startAll starts the first node, which makes the keys and the tables, and then the others.
func (c *Cluster) startAll(ctx context.Context) error {
	if err := c.Nodes[0].Start(ctx); err != nil {
		return err
	}
	errs := make([]error, len(c.Nodes))
	var starts sync.WaitGroup
	for i, n := range c.Nodes[1:] {
		if err := rig.CopyKeys(c.Nodes[0].Dir, n.Dir); err != nil {
			return err
		}
		starts.Go(func() { errs[i] = n.Start(ctx) })
	}
	starts.Wait()
	return errors.Join(errs...)
}

// Database returns the URL of the catalogue, by the server's socket.
func (c *Cluster) Database() string { return c.Server.URL("stasis") }

// Address is where a site for the nodes' Chromes can listen, with a free port.
func (c *Cluster) Address() string { return hub + ":0" }

// API calls the service through the front.
func (c *Cluster) API() *rig.Daemon { return &rig.Daemon{URL: c.Front.URL} }

// Node returns the node with an ID; nil: there is none.
func (c *Cluster) Node(id string) *Node {
	for _, n := range c.Nodes {
		if n.ID == id {
			return n
		}
	}
	return nil
}

// Stop stops the nodes, one after the other as an operator does. They save their sessions.
func (c *Cluster) Stop() error {
	var errs []error
	for _, n := range c.Nodes {
		errs = append(errs, n.Stop())
	}
	return errors.Join(errs...)
}

// Close ends everything, and removes all files.
func (c *Cluster) Close(ctx context.Context) error {
	errs := []error{c.Stop()}
	if c.Front != nil {
		errs = append(errs, c.Front.close())
	}
	for _, n := range c.Nodes {
		errs = append(errs, n.space.remove(ctx), n.log.Close())
	}
	if c.Store != nil {
		c.Store.Stop()
	}
	if c.Server != nil {
		errs = append(errs, c.Server.Stop())
	}
	if c.dir != "" {
		errs = append(errs, c.remove(ctx))
	}
	return errors.Join(errs...)
}

// remove removes the files. A process that was killed may still make one.
func (c *Cluster) remove(ctx context.Context) error {
	for {
		err := os.RemoveAll(c.dir)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", c.dir, err)
		}
	}
}
