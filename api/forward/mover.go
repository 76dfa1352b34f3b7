package forward

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/placement"
)

// takePatience is how long another node may need to continue a session.
const takePatience = 2 * time.Minute

// Peers are the nodes of the cluster; see [placement.Peers].
type Peers interface {
	Self() string
	Node(ctx context.Context, id string) (placement.Node, error)
	Order(ctx context.Context, w placement.Wanted) ([]placement.Node, error)
	Placed(nodeID string)
	// Forget has the next call read the nodes again.
	Forget()
}

// Mover has other nodes continue sessions of this one. Its methods are safe for concurrent use.
type Mover struct {
	peers     Peers
	forwarder *Forwarder
}

// NewMover makes a Mover.
func NewMover(p Peers, f *Forwarder) *Mover { return &Mover{p, f} }

// For returns the IDs of the other nodes that have room for a session of an engine, which this
// node's Chrome saves; the best first.
func (m *Mover) For(ctx context.Context, sessionID, engine string) ([]string, error) {
	ids, err := m.known(ctx, sessionID, engine)
	if err == nil && len(ids) == 0 {
		m.peers.Forget() // a node may have room, or be there, since a second
		ids, err = m.known(ctx, sessionID, engine)
	}
	return ids, err
}

// known is For by what is known of the nodes.
func (m *Mover) known(ctx context.Context, sessionID, engine string) ([]string, error) {
	self, err := m.peers.Node(ctx, m.peers.Self())
	if err != nil {
		return nil, err
	}
	// The session's snapshot does not exist yet; its ID only says that there will be one.
	nodes, err := m.peers.Order(ctx, placement.Wanted{Engine: engine, SnapshotID: sessionID, Chrome: self.Facts.Engines[engine]})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, n := range nodes {
		if n.ID != self.ID && n.Status.Free > 0 {
			ids = append(ids, n.ID)
		}
	}
	return ids, nil
}

// Take has a node continue a session that was ended as moved.
func (m *Mover) Take(ctx context.Context, nodeID, sessionID string) error {
	const op = "forward.take"
	to, err := m.peers.Node(ctx, nodeID)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, takePatience)
	defer cancel()
	path := "/v1/sessions/" + sessionID + "/resume"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL+path, nil) // it has no credentials
	if err != nil {
		return fault.Wrap(err, fault.NodeUnavailable, op, "the URL of node "+to.ID+" is malformed")
	}
	answer, err := m.forwarder.Ask(r, to, Hop{Purpose: ToMove}, http.MethodPost, path, nil)
	if err == nil {
		err = answer.Fault()
	}
	if err == nil {
		m.peers.Placed(to.ID)
	}
	return err
}

// Files reads the downloads and uploads of a session that a node has ended as moved. The caller
// closes the reader. The error is node_not_found if the node has no lease.
func (m *Mover) Files(ctx context.Context, nodeID, sessionID string) (io.ReadCloser, error) {
	const op = "forward.files"
	to, err := m.peers.Node(ctx, nodeID)
	if err != nil {
		return nil, err
	}
	if !to.Leased() {
		return nil, fault.New(fault.NodeNotFound, op, "node %s has no lease", to.ID)
	}
	path := "/v1/sessions/" + sessionID + "/files"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.URL+path, nil) // it has no credentials
	if err != nil {
		return nil, fault.Wrap(err, fault.NodeUnavailable, op, "the URL of node "+to.ID+" is malformed")
	}
	return m.forwarder.Open(r, to, Hop{Purpose: ToFiles}, path)
}
