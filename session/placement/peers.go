package placement

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
)

const (
	// peersAge is how long a list of nodes is used before it is read again.
	peersAge = time.Second
	// peersStale is how long an old list is used while the catalogue cannot be read.
	peersStale = 10 * time.Second
	// placeAge is how long the node of a session is remembered. A node that does not have a
	// session says so, and then the catalogue is asked at once.
	placeAge = 5 * time.Second
	// maxPlaces bounds how many sessions are remembered.
	maxPlaces = 1 << 14
)

// Peers are all nodes of a catalogue, with this one, and the sessions that live on them. Its
// methods are safe for concurrent use.
type Peers struct {
	self      string
	catalogue Catalogue
	now       func() time.Time

	reading chan struct{} // holds one token while the nodes are read

	mu     sync.Mutex
	nodes  []Node
	read   time.Time // when nodes were read
	forgot int       // how often Forget was called
	placed map[string]int
	places map[string]remembered
}

type remembered struct {
	Place
	until time.Time
}

// NewPeers makes Peers. self is the ID of this node.
func NewPeers(self string, c Catalogue, now func() time.Time) *Peers {
	return &Peers{self: self, catalogue: c, now: now, reading: make(chan struct{}, 1), placed: map[string]int{}, places: map[string]remembered{}}
}

// Self returns the ID of this node.
func (p *Peers) Self() string { return p.self }

// Nodes returns all nodes by ID. The list is at most a second old, or a few seconds if the
// catalogue cannot be read. Left counts down meanwhile.
func (p *Peers) Nodes(ctx context.Context) ([]Node, error) { return p.upTo(ctx, peersAge) }

// upTo is Nodes with a list that is not older than age, if the catalogue can be read.
func (p *Peers) upTo(ctx context.Context, age time.Duration) ([]Node, error) {
	if nodes, ok := p.known(age); ok {
		return nodes, nil
	}
	select {
	case p.reading <- struct{}{}:
		defer func() { <-p.reading }()
	case <-ctx.Done():
		return nil, fault.Wrap(ctx.Err(), fault.Timeout, "placement.nodes", "the request was cancelled")
	}
	if nodes, ok := p.known(age); ok { // another call has read it meanwhile
		return nodes, nil
	}
	p.mu.Lock()
	forgot := p.forgot
	p.mu.Unlock()
	before := p.now() // the leases are at least as long after the answer
	records, err := p.catalogue.Nodes(ctx)
	if err != nil {
		if nodes, ok := p.known(peersStale); ok {
			return nodes, nil
		}
		return nil, err
	}
	nodes := make([]Node, 0, len(records))
	for _, r := range records {
		nodes = append(nodes, nodeOf(r))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if forgot == p.forgot { // else something may have changed since this list was read
		p.nodes, p.read, p.placed = nodes, before, map[string]int{}
	}
	return slices.Clone(nodes), nil
}

// withRoom is upTo. The sessions that were placed since the list was read take their places.
func (p *Peers) withRoom(ctx context.Context, age time.Duration) ([]Node, error) {
	nodes, err := p.upTo(ctx, age)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, n := range nodes {
		nodes[i].Status.Free -= p.placed[n.ID]
	}
	return nodes, nil
}

// Forget has the next call read the nodes again.
func (p *Peers) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodes = nil
	p.forgot++
}

// known returns the list if it is not older than age.
func (p *Peers) known(age time.Duration) ([]Node, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	passed := p.now().Sub(p.read)
	if p.nodes == nil || passed > age {
		return nil, false
	}
	nodes := slices.Clone(p.nodes)
	for i := range nodes {
		nodes[i].Left -= passed
	}
	return nodes, true
}

// Node returns the node with an ID, or node_not_found.
func (p *Peers) Node(ctx context.Context, id string) (Node, error) {
	nodes, err := p.Nodes(ctx)
	if err != nil {
		return Node{}, err
	}
	if i := slices.IndexFunc(nodes, func(n Node) bool { return n.ID == id }); i >= 0 {
		return nodes[i], nil
	}
	return Node{}, fault.New(fault.NodeNotFound, "placement.node", "%s", fault.NodeNotFound.Text())
}

// Find returns where a session lives, or has lived last; session_not_found if there is none.
// It remembers for a few seconds where a session lives.
func (p *Peers) Find(ctx context.Context, sessionID string) (Place, error) {
	p.mu.Lock()
	known, ok := p.places[sessionID]
	p.mu.Unlock()
	if ok && p.now().Before(known.until) {
		return known.Place, nil
	}
	return p.Refind(ctx, sessionID)
}

// Refind is Find by the catalogue. It is called if a node does not have the session that Find
// has found there.
func (p *Peers) Refind(ctx context.Context, sessionID string) (Place, error) {
	at := p.now().Add(placeAge)
	place, err := p.catalogue.NodeOf(ctx, sessionID)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.places, sessionID)
	if err != nil {
		return Place{}, err
	}
	if !place.Ended && place.NodeID != p.self {
		if len(p.places) >= maxPlaces {
			clear(p.places)
		}
		p.places[sessionID] = remembered{place, at}
	}
	return place, nil
}
