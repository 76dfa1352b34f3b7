package session

import (
	"context"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/cluster"
	"github.com/stasisd/stasis/session/events"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/request"
)

// Node is the node that a service is, of several with one catalogue; see [cluster.Keeper].
type Node interface {
	ID() string // "": the daemon is not a node
	// Check returns an error while the node has no lease, and may use no session.
	Check() error
	// Leads reports whether this node does what is done once in the cluster.
	Leads() bool
	// Changed has other nodes learn soon how many places this one has. It does not wait.
	Changed()
}

// alone is a daemon that is not a node.
type alone struct{}

func (alone) ID() string   { return "" }
func (alone) Check() error { return nil }
func (alone) Leads() bool  { return true }
func (alone) Changed()     {}

// turn returns what reports whether this daemon does what is done once in a cluster; nil: it
// always does.
func turn(n Node) func() bool {
	if n.ID() == "" {
		return nil
	}
	return n.Leads
}

// TakeoverRecords is what a node needs to take sessions over; see [profiles.NodeStore] and
// [profiles.LeftStore].
type TakeoverRecords interface {
	EndStranded(ctx context.Context, e profiles.StrandedEnd) (bool, error)
	Restarts(ctx context.Context) ([]profiles.LeftSession, error)
	SetRestart(ctx context.Context, l profiles.LeftSession, restart bool) (bool, error)
	Moving(ctx context.Context) ([]profiles.Session, error)
}

// NodeSessions is what a node does with its sessions, and with those of other nodes that it
// takes over. It implements [cluster.Sessions].
type NodeSessions struct {
	s       *Service
	records TakeoverRecords
	moves   mover
	mu      sync.Mutex
	lost    []lostSession
}

var _ cluster.Sessions = (*NodeSessions)(nil)

// lostSession is a session that another node has taken over.
type lostSession struct {
	rec profiles.Session
	dir *browser.Dir
}

// Nodes returns what a node does with sessions of a service. to are the other nodes; nil: it
// moves no sessions.
func Nodes(s *Service, records TakeoverRecords, to Destinations) *NodeSessions {
	if to == nil {
		to = noDestinations{}
	}
	s.left.useNodes(to)
	return &NodeSessions{s: s, records: records, moves: mover{s: s, to: to, staying: map[string]stay{}, failed: map[string]time.Time{}}}
}

// Status implements [cluster.Sessions].
func (n *NodeSessions) Status() placement.Status {
	s := n.s.Lookup().NodeStatus()
	s.Staying = n.moves.Staying()
	return s
}

// Move implements [cluster.Sessions].
func (n *NodeSessions) Move(ctx context.Context) {
	n.moves.dropFiles(ctx)
	n.moves.move(ctx, false, n.s.sessions.All())
}

// Leave moves the live sessions to other nodes, because the daemon stops. Those that stay are
// then saved by [Service.Close]. From this call on the node is not ready, and begins no session.
// Those that it has begun to make are moved too. Last, Leave waits until files that stayed here are
// no longer needed.
func (n *NodeSessions) Leave(ctx context.Context) {
	n.s.sessions.Drain()
	n.s.capacity.Stop()
	tried := map[*liveSession]bool{}
	for {
		making := n.s.sessions.Counts().Creating
		var all []*liveSession
		for _, l := range n.s.sessions.All() {
			if !tried[l] {
				tried[l] = true
				all = append(all, l)
			}
		}
		n.moves.move(ctx, true, all)
		n.moves.dropFiles(ctx)
		if making == 0 && len(n.s.left.ids()) == 0 {
			return
		}
		select {
		case <-time.After(leaveLook):
		case <-ctx.Done():
			return
		}
	}
}

// leaveLook is the time between two looks for sessions that were made while the node leaves.
const leaveLook = 100 * time.Millisecond

// Take continues a session that another node has ended as moved.
func (n *NodeSessions) Take(ctx context.Context, id string) error { return n.moves.take(ctx, id) }

// Give writes the downloads and uploads of a session that this node has ended as moved, for the
// node that continues it. It returns file_not_found if it does not have them.
func (n *NodeSessions) Give(ctx context.Context, id string, w io.Writer) error {
	return n.s.left.give(ctx, id, w)
}

// Lose implements [cluster.Sessions]. A create that is under way may still make its session live.
func (n *NodeSessions) Lose(ctx context.Context) {
	n.s.creates.lose()
	n.s.deps.Line.Lose()
	all := n.s.sessions.All()
	for _, l := range all {
		l.lose()
	}
	n.s.creates.await(ctx)
	for _, l := range n.s.sessions.All() {
		if !slices.Contains(all, l) {
			l.lose()
			all = append(all, l)
		}
	}
	for _, l := range all {
		select {
		case <-l.gone:
		case <-ctx.Done():
			return
		}
		n.mu.Lock()
		n.lost = append(n.lost, lostSession{l.rec, l.dir})
		n.mu.Unlock()
	}
}

// Regain implements [cluster.Sessions].
func (n *NodeSessions) Regain(context.Context) {
	n.mu.Lock()
	lost := n.lost
	n.lost = nil
	n.mu.Unlock()
	n.s.creates.begin()
	for _, l := range lost {
		n.s.rescues.Add(l.rec, l.dir)
	}
	n.s.rescues.Begin()
}

// nodeLost is the reason of sessions and runs that a node has taken over from another.
const nodeLost = "the node on which the session lived died, or lost its lease"

// TakeOver implements [cluster.Sessions]. Other nodes may end the same sessions at once.
func (n *NodeSessions) TakeOver(ctx context.Context, stranded []profiles.Session) error {
	defer n.s.deps.Notices.Wake()
	rand.Shuffle(len(stranded), func(i, j int) { stranded[i], stranded[j] = stranded[j], stranded[i] })
	var failed error
	for _, rec := range stranded {
		now := n.s.deps.Now().UTC()
		r, err := request.FromRecord(n.s.deps.Vault, rec)
		done, ended := n.records.EndStranded(ctx, profiles.StrandedEnd{
			End: profiles.End{SessionID: rec.ID, Status: profiles.StatusError, Reason: profiles.ReasonNodeLost.With(nodeLost), EndedAt: now,
				Notices: n.s.deps.Notices.For(events.EndEvents(true)...)},
			Restart: err == nil && r.Restart, // without its options, it cannot be started
			Run: func(run profiles.Run) profiles.RunEnd {
				return profiles.RunEnd{RunID: run.ID, Status: profiles.RunFailed, Cause: nodeLost, EndedAt: now,
					Last: []profiles.Event{events.EndedEvent(profiles.RunFailed, nodeLost, now)}}
			},
			Keep: events.Keep,
		})
		if ended != nil {
			failed = ended
			continue
		}
		if done {
			n.s.deps.Log.Warn("a session of a lost node was ended as crashed; it can be resumed from its newest snapshot", "session", rec.ID, "node", rec.NodeID, "restart", err == nil && r.Restart)
		}
	}
	return failed
}

// Restart implements [cluster.Sessions]. Each session is started by the node that claims it
// first. A node that has no place leaves it to others.
func (n *NodeSessions) Restart(ctx context.Context) error {
	n.moves.dropFiles(ctx)
	all, err := n.records.Restarts(ctx)
	if err != nil {
		return err
	}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, l := range all {
		if n.Status().Free == 0 {
			return nil
		}
		claimed, err := n.records.SetRestart(ctx, l, false)
		if err != nil || !claimed {
			return err
		}
		err = n.restart(ctx, l.SessionID)
		switch fault.CodeOf(err) {
		case fault.TooManySessions, fault.ShuttingDown, fault.NodeLost, fault.CatalogueUnavailable:
			_, again := n.records.SetRestart(context.WithoutCancel(ctx), l, true)
			return again
		}
		if err != nil {
			n.s.deps.Log.Error("a session of a lost node could not be started again; resume it", "session", l.SessionID, "error", err)
			continue
		}
		n.s.deps.Log.Info("a session of a lost node was started again", "session", l.SessionID)
	}
	moving, err := n.records.Moving(ctx)
	if err == nil {
		n.moves.takeEach(ctx, moving)
	}
	return err
}

// restart resumes a session with the key that it was created with.
func (n *NodeSessions) restart(ctx context.Context, id string) error {
	rec, err := n.s.deps.Catalogue.Session(ctx, id)
	if err != nil {
		return err
	}
	if rec.EndedAt.IsZero() {
		return nil // a caller was first
	}
	c, err := n.moves.callerOf(ctx, rec.KeyID)
	if err != nil {
		return err
	}
	_, _, err = n.s.resume(ctx, c, request.Create{SessionID: id}.AfterLoss())
	return err
}
