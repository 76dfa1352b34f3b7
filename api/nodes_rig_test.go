package api

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/profilestest"
	"github.com/stasisd/stasis/session/access"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/request"
)

// hopTicket is a ticket in the form that Stasis makes, for the session liveID.
const hopTicket = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// fakeNodes is the catalogue that the nodes of a test share.
type fakeNodes struct {
	mu     sync.Mutex
	nodes  []profiles.Node
	places map[string]placement.Place
	reads  int
}

func (f *fakeNodes) Nodes(context.Context) ([]profiles.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]profiles.Node{}, f.nodes...), nil
}

func (f *fakeNodes) NodeOf(_ context.Context, id string) (profiles.Place, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	p, ok := f.places[id]
	if !ok {
		return p, fault.New(fault.SessionNotFound, "fake", "")
	}
	return p, nil
}

func (f *fakeNodes) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// node returns the node with an ID, to be changed within set.
func (f *fakeNodes) node(id string) *profiles.Node {
	for i := range f.nodes {
		if f.nodes[i].ID == id {
			return &f.nodes[i]
		}
	}
	return nil
}

// fakeTickets accepts hopTicket on the node of the session.
type fakeTickets struct {
	SessionTickets
	here bool
}

func (f fakeTickets) AuthorizeTicket(ctx context.Context, ticket, id string, p access.Purpose) (access.Caller, error) {
	if ticket == hopTicket && id == liveID && f.here {
		return caller(), nil
	}
	return f.SessionTickets.AuthorizeTicket(ctx, ticket, id, p)
}

// nodes are the servers of several nodes: a, which the tests call, and others, by ID.
type nodes struct {
	*fakeNodes
	rigs    map[string]*rig
	answers *fakeAnswers // of all nodes
	waiting *profilestest.MemoryWaiting
}

// newNodes makes nodes that have a lease. liveID lives on the last one. Those that come first
// have less room. change may change the options of a node before it is made.
func newNodes(t *testing.T, change func(id string, o *Options), ids ...string) *nodes {
	t.Helper()
	n := &nodes{fakeNodes: &fakeNodes{places: map[string]placement.Place{liveID: {NodeID: ids[len(ids)-1]}}}, rigs: map[string]*rig{},
		answers: &fakeAnswers{kept: map[string]Answer{}}, waiting: profilestest.NewMemoryWaiting(time.Now)}
	for i, id := range ids {
		r := newRig(t, func(o *Options) {
			lives := i == len(ids)-1
			o.Answers, o.SessionTickets = n.answers, fakeTickets{o.SessionTickets, lives}
			if change != nil {
				change(id, o)
			}
			signer := forward.NewSigner(id, []byte("shared"), o.Now)
			peers := placement.NewPeers(id, n, time.Now)
			o.Cluster = &Cluster{Peers: peers, Signer: signer, Line: placement.NewLine(peers, n.waiting, 5*time.Millisecond, o.Logger),
				Waiter: func(_ context.Context, c access.Caller, r request.Create, w placement.Wanted) (placement.Waiter, error) {
					return placement.Waiter{Wanted: w, UserID: r.UserID, KeyID: c.KeyID}, nil
				},
				Lives:     func(session string) bool { return lives && session == liveID },
				Moving:    func(string) bool { return false },
				Caller:    func(context.Context, string) (access.Caller, error) { return caller(), nil },
				Wants:     func(context.Context, request.Create) (placement.Wanted, error) { return placement.Wanted{}, nil },
				Forwarder: forward.New(forward.Config{Signer: signer, Nodes: peers, Log: o.Logger})}
		})
		t.Cleanup(r.server.cluster.Forwarder.Close)
		t.Cleanup(r.server.cluster.Line.Close)
		n.rigs[id] = r
		n.nodes = append(n.nodes, profiles.Node{ID: id, Number: int64(i + 1), Left: time.Minute, Status: profiles.JSON(placement.Status{Free: 4 * (i + 1)})})
		n.at(id, r.url)
	}
	return n
}

// at sets where a node is.
func (n *nodes) at(id, url string) {
	of := n.node(id)
	of.URL, of.Facts = url, profiles.JSON(placement.Facts{Sessions: 8, URLMAC: n.rigs[id].server.cluster.Signer.URLMAC(id, url)})
}

// tracked returns how many connections of a server are tracked, and how many of them wait.
func (r *rig) tracked() (open, waiting int) {
	o := r.server.connections
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.open), o.waiting.Len()
}

var withKey = http.Header{"X-Api-Key": {goodKey}}
