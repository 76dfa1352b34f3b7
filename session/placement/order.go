package placement

import (
	"cmp"
	"context"
	"slices"

	"github.com/stasisd/stasis/state"
)

// Wanted says what a new session needs of its node.
type Wanted struct {
	Engine string // "": any
	// SnapshotID is what it is restored from; "": it starts empty. Chrome is the version of
	// the Chrome that wrote it.
	SnapshotID, Chrome string
	UserID             string // of the snapshot
	// Holder is the node of a live session that holds the same environment; "": there is
	// none, or it does not matter.
	Holder string
}

// Order returns the nodes that can take a session, the quickest first: the one that holds the
// environment, one that has the snapshot's Chrome parked or waiting, this one if it has a spare
// and room, and then those with the most room. Nodes without room come last: they may have got
// room since they said so.
// Nodes that have no lease, are draining, or lack the engine or a Chrome at least as new as the
// snapshot's are left out.
func (p *Peers) Order(ctx context.Context, w Wanted) ([]Node, error) {
	nodes, err := p.withRoom(ctx, peersAge)
	if err != nil {
		return nil, err
	}
	nodes = slices.DeleteFunc(nodes, func(n Node) bool { return !w.fits(n) })
	slices.SortStableFunc(nodes, func(a, b Node) int {
		return cmp.Or(
			cmp.Compare(p.rank(a, w), p.rank(b, w)),
			cmp.Compare(b.Status.Free, a.Status.Free),
			compareSelf(a.ID == p.self, b.ID == p.self),
		)
	})
	return nodes, nil
}

// Placed records that a session was placed on a node, which its status does not know yet.
func (p *Peers) Placed(nodeID string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.placed[nodeID]++
}

// rank returns how quick a node is for a session; less is quicker.
func (p *Peers) rank(n Node, w Wanted) int {
	room := n.Status.Free > 0
	switch {
	case w.Holder != "" && n.ID == w.Holder:
		return 0
	case w.SnapshotID != "" && slices.Contains(n.Status.Parked, w.SnapshotID) && room:
		return 1
	case w.SnapshotID != "" && slices.Contains(n.Status.Standbys, w.SnapshotID) && room:
		return 2
	case n.ID == p.self && room && w.spare(n):
		return 3
	case room:
		return 4
	}
	return 5
}

// fits reports whether a node can have the session.
func (w Wanted) fits(n Node) bool {
	chrome, has := n.Facts.Engines[w.Engine]
	switch {
	case !n.Leased(), n.Draining, w.Engine != "" && !has, w.SnapshotID != "" && n.Facts.WriteOnly:
		return false
	}
	return w.SnapshotID == "" || w.Engine == "" || !state.Newer(w.Chrome, chrome)
}

// spare reports whether a node has an empty Chrome of the engine.
func (w Wanted) spare(n Node) bool {
	if w.Engine != "" {
		return n.Status.Spares[w.Engine] > 0
	}
	for _, spares := range n.Status.Spares {
		if spares > 0 {
			return true
		}
	}
	return false
}

func compareSelf(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
