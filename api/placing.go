package api

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/stasisd/stasis/api/forward"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/quota"
	"github.com/stasisd/stasis/session/request"
)

// placing is a create that is being placed.
type placing struct {
	p     *placer
	c     *call
	r     request.Create
	began time.Time
	// local makes the session on this node, and remote on another. The create may wait for its
	// environment for some time.
	local  func(wait time.Duration) error
	remote func(to placement.Node, h forward.Hop) error
}

// destination is where a create can be placed.
type destination struct {
	nodes  []placement.Node // the best first
	wanted placement.Wanted
	exists bool // the session exists, and needs no place
}

// place asks the nodes for a place, the best first, until one does not refuse. If all are full
// and the create may wait, it waits for the next place of any node. If other creates wait already,
// it asks no node before it is its turn. Without any node, this one answers.
func (p *placer) place(c *call, r request.Create, local func(wait time.Duration) error, remote func(to placement.Node, h forward.Hop) error) error {
	a := placing{p, c, r, p.now(), local, remote}
	ctx := c.Request().Context()
	to, err := p.find(ctx, r)
	if err != nil {
		return err
	}
	if !to.exists && !c.caller.MayActFor(cmp.Or(to.wanted.UserID, r.UserID, c.caller.UserID)) {
		return local(0) // it is refused, and takes no turn of those who wait
	}
	waits, err := a.othersFirst(ctx, to)
	if err != nil {
		return err
	}
	if waits && r.Wait <= 0 {
		return fault.New(fault.TooManySessions, "api.place", "all session slots are in use, and other creates wait for the next one; end a session, or wait with wait_seconds")
	}
	var refused error
	if !waits {
		refused = a.ask(to)
		if to.exists || r.Wait <= 0 || !fault.Is(refused, fault.TooManySessions) && !isOverSessions(refused) {
			return refused
		}
	}
	waiter, err := p.cluster.Waiter(ctx, c.caller, r, to.wanted)
	if err != nil {
		return err
	}
	waiter.Refused = refused
	wait, cancel := context.WithTimeout(ctx, a.left())
	defer cancel()
	return p.cluster.Line.Wait(wait, waiter, func() (refused bool, err error) {
		to, err := p.find(ctx, r) // what it restores may have changed
		if err == nil {
			err = a.ask(to)
		}
		return isRefusal(err) || isOverSessions(err), err
	})
}

// find returns where a create can be placed. A session that exists is continued where it lives.
func (p *placer) find(ctx context.Context, r request.Create) (to destination, err error) {
	if r.SessionID != "" {
		place, err := p.cluster.Peers.Refind(ctx, r.SessionID)
		switch {
		case fault.Is(err, fault.SessionNotFound):
		case err != nil:
			return to, err
		case !place.Ended:
			node, err := p.cluster.Peers.Node(ctx, place.NodeID)
			if err == nil && !node.Leased() || fault.Is(err, fault.NodeNotFound) {
				err = fault.New(fault.NodeUnavailable, "api.place", "%s", fault.NodeUnavailable.Text())
			}
			return destination{nodes: []placement.Node{node}, exists: true}, err
		case !r.Resume:
			return destination{exists: true}, nil // the catalogue has the answer
		}
	}
	if to.wanted, err = p.cluster.Wants(ctx, r); err != nil {
		return to, err
	}
	if to.nodes, err = p.cluster.Peers.Order(ctx, to.wanted); err == nil && len(to.nodes) == 0 {
		p.cluster.Peers.Forget() // one may have its lease again since the list was read
		to.nodes, err = p.cluster.Peers.Order(ctx, to.wanted)
	}
	return to, err
}

// othersFirst reports whether creates that wait go before this one. One that is to share a live
// session, or to fail because of it, needs no place.
func (a placing) othersFirst(ctx context.Context, to destination) (bool, error) {
	on := a.r.OnLiveOrDefault()
	if to.exists || len(to.nodes) == 0 || to.wanted.Holder != "" && (on == request.OnLiveShare || on == request.OnLiveFail) {
		return false, nil
	}
	return a.p.cluster.Line.Before(ctx, to.wanted)
}

// left returns how much of its time the create may still wait.
func (a placing) left() time.Duration { return max(a.r.Wait-a.p.now().Sub(a.began), 0) }

// ask asks the nodes until one does not refuse. If all do, the error is that of a full one, if one
// is full.
func (a placing) ask(to destination) error {
	if len(to.nodes) == 0 {
		return a.nowhere()
	}
	var full, last error
	for _, n := range to.nodes {
		err := a.askOne(n)
		switch {
		case fault.Is(err, fault.RequestInProgress) && fault.Is(last, fault.NodeLost):
			return last // a node that was asked before still has the session's ID, and may have made it
		case !isRefusal(err):
			return err
		case isUnavailable(err):
			last = err
		default:
			full = cmp.Or(full, err)
		}
	}
	return cmp.Or(full, last)
}

func (a placing) askOne(n placement.Node) error {
	h := forward.Hop{Purpose: forward.ToPlace, SessionID: a.r.SessionID}
	var wait time.Duration
	if a.r.OnLiveOrDefault() == request.OnLiveWait && a.r.Wait > 0 {
		wait = a.left()
		h.Purpose, h.Wait = forward.ToWait, wait.Milliseconds()
	}
	if n.ID == a.p.cluster.Peers.Self() {
		return a.local(wait)
	}
	err := a.remote(n, h)
	if err == nil {
		a.p.cluster.Peers.Placed(n.ID)
	}
	return err
}

// nowhere answers a create that no node can take. A node that is draining refuses it; else this
// one says what is wrong.
func (a placing) nowhere() error {
	peers := a.p.cluster.Peers
	self, err := peers.Node(a.c.Request().Context(), peers.Self())
	if err == nil && self.Draining {
		return fault.New(fault.ShuttingDown, "api.place", "no node takes new sessions: each is draining, or cannot have this session; try again later")
	}
	return a.local(a.r.Wait)
}

// isOverSessions reports whether an error says that a user or a key has as many sessions as its
// quota allows. A create may wait for the end of one.
func isOverSessions(err error) bool {
	var over quota.Exceeded
	return errors.As(err, &over) && over.Name == quota.Sessions
}
