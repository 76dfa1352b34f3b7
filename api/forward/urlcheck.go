package forward

import (
	"context"
	"log/slog"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/placement"
)

const (
	// tryPatience is how long another node may need to call this one and to answer.
	tryPatience = 10 * time.Second
	// urlTries is how often a node tries whether others reach it, and tryPause the time between two
	// tries. Within that time a name service learns the address of a node that is new, and the
	// lease of a node ends that was killed just before.
	urlTries = 5
	tryPause = 10 * time.Second
)

// AllPeers are the nodes of the cluster; see [placement.Peers].
type AllPeers interface {
	Self() string
	Nodes(ctx context.Context) ([]placement.Node, error)
	// Forget has the next call read the nodes again.
	Forget()
}

// URLCheck finds out whether other nodes reach this one at its --node-url. A node that nobody
// reaches looks like any other in the catalogue, and only calls about its sessions fail.
type URLCheck struct {
	peers     AllPeers
	forwarder *Forwarder
	log       *slog.Logger
	pause     time.Duration
}

// NewURLCheck makes a URLCheck. pause is the time between two tries; 0: ten seconds.
func NewURLCheck(p AllPeers, f *Forwarder, pause time.Duration, log *slog.Logger) *URLCheck {
	if pause == 0 {
		pause = tryPause
	}
	return &URLCheck{p, f, log, pause}
}

// Run has one other node call this one, and logs a warning if that fails. It tries again for less
// than a minute, until a node has reached this one or ctx ends. A node without others tries nothing:
// those that start later try whether they reach it.
func (u *URLCheck) Run(ctx context.Context) {
	warned := false
	for try := 1; try <= urlTries; try++ {
		found, err := u.try(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil: // the catalogue is away, which others log
		case found.reached:
			if warned {
				u.log.Info("another node reaches this node now", "url", found.url, "node", found.node)
			}
			return
		case found.node == "":
			return
		case found.unreached != "" && !warned:
			u.log.Warn("another node does not reach this node at its --node-url, so other nodes answer calls about its sessions with node_unavailable, and place no sessions on it; correct --node-url, or the network between the nodes",
				"url", found.url, "node", found.node, "error", found.unreached)
			warned = true
		case found.unanswered != "" && try == urlTries:
			u.log.Warn("this node does not reach another node at the --node-url of that node; correct that --node-url, or the network between the nodes",
				"url", found.url, "node", found.node, "error", found.unanswered)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(u.pause):
		}
	}
}

// finding is what a try has found.
type finding struct {
	node       string // the other node; "": there is none
	url        string // of the node that was not reached, or of this one if it was
	reached    bool   // the other node has reached this one
	unreached  string // why it has not
	unanswered string // why this node has not reached any other one
}

// try asks the other nodes until one answers.
func (u *URLCheck) try(ctx context.Context) (found finding, err error) {
	u.peers.Forget() // this node has just joined
	nodes, err := u.peers.Nodes(ctx)
	if err != nil {
		return found, err
	}
	own := ""
	for _, n := range nodes {
		if n.ID == u.peers.Self() {
			own = n.URL
		}
	}
	for _, n := range nodes {
		if n.ID == u.peers.Self() || !n.Leased() {
			continue
		}
		unreached, err := u.tryBy(ctx, n)
		if err == nil {
			return finding{node: n.ID, url: own, reached: unreached == "", unreached: unreached}, nil
		}
		found = finding{node: n.ID, url: n.URL, unanswered: fault.MessageOf(err)}
	}
	return found, nil
}

func (u *URLCheck) tryBy(ctx context.Context, n placement.Node) (unreached string, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryPatience)
	defer cancel()
	return u.forwarder.TryBack(ctx, n)
}
