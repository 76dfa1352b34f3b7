package placement

import (
	"math"
	"slices"

	"github.com/stasisd/stasis/profiles"
)

// turnOf is who takes turns: a user, or a key of a user.
type turnOf struct{ user, key string }

// turns are the creates of all nodes that wait for a place, and when each user and key had its
// last turn. The order is that of one daemon (package capacity): in turn between users, in turn
// between the keys of a user, and first come, first served for one key.
type turns struct {
	waiting []profiles.WaitingCreate // the first to come is the first
	fresh   []profiles.WaitingCreate // had a turn, and the place may not be in the status of its node
	served  map[turnOf]int64
	last    int64
	// given counts the places that give has given, by user, and by key with an empty user.
	given map[turnOf]int64
}

// newTurns makes turns of what the catalogue lists. Creates that let others go first, or that wait
// only for a quota, are left out.
func newTurns(all []profiles.WaitingCreate) *turns {
	t := &turns{served: map[turnOf]int64{}, given: map[turnOf]int64{}}
	for _, w := range all {
		if w.Turn > 0 {
			t.serve(w, w.Turn)
		}
		if w.Fresh {
			t.fresh = append(t.fresh, w)
		}
	}
	for _, w := range all {
		if w.Turn == 0 && !w.Paused && !t.over(w) {
			t.waiting = append(t.waiting, w)
		}
	}
	return t
}

// serve records that a create had a turn.
func (t *turns) serve(w profiles.WaitingCreate, turn int64) {
	user, key := turnOf{user: w.UserID}, turnOf{w.UserID, w.KeyID}
	t.last = max(t.last, turn)
	t.served[user], t.served[key] = max(t.served[user], turn), max(t.served[key], turn)
}

// over reports whether a quota of a create is reached.
func (t *turns) over(w profiles.WaitingCreate) bool {
	return w.MostOfUser != nil && w.OfUser+t.given[turnOf{user: w.UserID}] >= *w.MostOfUser ||
		w.MostOfKey != nil && w.OfKey+t.given[turnOf{key: w.KeyID}] >= *w.MostOfKey
}

// give gives the free places of nodes to the creates whose turn it is, and returns their IDs. It
// takes the places from the status of the nodes, and first one for each fresh turn: otherwise the
// next create would ask for the same place in vain. A create that fits no node with a free place is
// left out, so that it delays no other.
func (t *turns) give(nodes []Node) (ids []string) {
	for _, w := range t.fresh {
		if n := mostFree(nodes, wanted(w)); n >= 0 {
			nodes[n].Status.Free--
		}
	}
	for anyFree(nodes) {
		i, n := t.first(nodes)
		if i < 0 {
			return ids
		}
		w := t.waiting[i]
		t.waiting = slices.Delete(t.waiting, i, i+1)
		nodes[n].Status.Free--
		t.serve(w, t.last+1)
		t.given[turnOf{user: w.UserID}]++
		t.given[turnOf{key: w.KeyID}]++
		ids = append(ids, w.ID)
	}
	return ids
}

// first returns the index of the create that is next, and of the node with a place for it: the
// first of the user who had a turn the longest ago, and there of the key that had one the longest
// ago. Those that fit no node with a free place, or whose quota is reached, are left out. It
// returns -1 for none. One pass finds it: a user may wait with thousands of creates that are left out.
func (t *turns) first(nodes []Node) (found, node int) {
	found, node = -1, -1
	user, key := int64(math.MaxInt64), int64(math.MaxInt64)
	for i, w := range t.waiting {
		u, k := t.served[turnOf{user: w.UserID}], t.served[turnOf{w.UserID, w.KeyID}]
		if u > user || u == user && k >= key || t.over(w) {
			continue
		}
		if n := mostFree(nodes, wanted(w)); n >= 0 {
			found, node, user, key = i, n, u, k
		}
	}
	return found, node
}

// before reports whether creates that wait go before one that does not: they compete for nodes
// that it could use, and nothing is left there when they have got their places.
func (t *turns) before(w Wanted, nodes []Node) bool {
	competes := slices.ContainsFunc(t.waiting, func(other profiles.WaitingCreate) bool {
		o := wanted(other)
		return slices.ContainsFunc(nodes, func(n Node) bool { return w.fits(n) && o.fits(n) })
	})
	if !competes {
		return false
	}
	t.give(nodes)
	return mostFree(nodes, w) < 0
}

// wanted returns what a create needs of its node.
func wanted(w profiles.WaitingCreate) Wanted {
	of := Wanted{Engine: w.Engine, Chrome: w.Chrome}
	if w.Restores {
		of.SnapshotID = "some" // which one does not matter
	}
	return of
}

// mostFree returns the index of the node with the most free places of those that fit; -1: none.
func mostFree(nodes []Node, w Wanted) int {
	best := -1
	for i, n := range nodes {
		if n.Status.Free > 0 && w.fits(n) && (best < 0 || n.Status.Free > nodes[best].Status.Free) {
			best = i
		}
	}
	return best
}

func anyFree(nodes []Node) bool {
	return slices.ContainsFunc(nodes, func(n Node) bool { return n.Status.Free > 0 })
}
