package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/stasisd/stasis/e2e/rig"
)

// Node is a daemon of a cluster.
type Node struct {
	ID  string
	URL string // without a load balancer
	Dir string // data directory

	number int
	space  space
	daemon rig.Daemon
	log    *os.File
	runs   bool
}

// Start starts the node, and waits until it is ready for calls.
func (n *Node) Start(ctx context.Context) error {
	if err := n.daemon.Start(ctx); err != nil {
		return fmt.Errorf("node %s: %w", n.ID, err)
	}
	n.runs = true
	ctx, cancel := context.WithTimeout(ctx, readyDeadline)
	defer cancel()
	for !n.Ready(ctx) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("node %s is not ready: %w", n.ID, ctx.Err())
		}
	}
	return nil
}

// Ready reports whether the node's /readyz answers 200.
func (n *Node) Ready(ctx context.Context) bool {
	return answers(ctx, &http.Client{Timeout: checkEvery, Transport: &http.Transport{DisableKeepAlives: true}}, n.URL+"/readyz")
}

// Call calls the node itself, as [rig.Daemon.Call] does.
func (n *Node) Call(ctx context.Context, method, path string, body, out any) error {
	at := rig.Daemon{URL: n.URL}
	return at.Call(ctx, method, path, body, out)
}

// Upgrade has the next start run another binary.
func (n *Node) Upgrade(binary string) { n.daemon.Binary = binary }

// Env returns the variables with which other verbs of the binary find the catalogue and the store.
func (n *Node) Env() []string { return n.daemon.Env }

// Kill ends the node's process at once.
func (n *Node) Kill() error {
	n.runs = false
	return n.daemon.Stop(syscall.SIGKILL)
}

// Stop stops the node as an operator does. It saves its sessions. A node that does not run is
// no error.
func (n *Node) Stop() error {
	if !n.runs {
		return nil
	}
	n.runs = false
	if err := n.daemon.Stop(syscall.SIGTERM); err != nil {
		return fmt.Errorf("node %s: %w", n.ID, err)
	}
	return nil
}

// Pause stops the node's process with SIGSTOP, but not its Chromes. Continue continues it.
func (n *Node) Pause() error { return syscall.Kill(n.daemon.PID(), syscall.SIGSTOP) }

// Continue continues the node's process.
func (n *Node) Continue() error { return syscall.Kill(n.daemon.PID(), syscall.SIGCONT) }

// CutDatabase drops all packets between the node and the PostgreSQL server, until Heal.
func (n *Node) CutDatabase(ctx context.Context) error {
	return n.space.cut(ctx, hub+":"+databasePort)
}

// CutStore drops all packets between the node and the S3 server.
func (n *Node) CutStore(ctx context.Context) error { return n.space.cut(ctx, hub+":"+storePort) }

// CutNodes drops all packets between the node and the others.
func (n *Node) CutNodes(ctx context.Context, others []*Node) error {
	var to []string
	for _, o := range others {
		if o != n {
			to = append(to, o.space.address)
		}
	}
	if len(to) == 0 {
		return errors.New("the node has no others")
	}
	return n.space.cut(ctx, to...)
}

// Heal ends a cut.
func (n *Node) Heal(ctx context.Context) error { return n.space.heal(ctx) }

// CopyLog copies the node's log to a file.
func (n *Node) CopyLog(to string) error {
	raw, err := os.ReadFile(n.log.Name())
	if err != nil {
		return err
	}
	return os.WriteFile(to, raw, 0o600)
}
