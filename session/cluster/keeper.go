// Package cluster makes a daemon one of several nodes that share a catalogue in PostgreSQL. A
// [Keeper] holds the node's lease, and takes over nodes whose lease has ended.
//
// The catalogue decides when a lease has ended; see [profiles.NodeStore]. A keeper counts from
// before it asked for a renewal, and so always gives up first. From then on the node takes no
// calls for its sessions, and its Chromes are frozen.
package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/placement"
)

// Sessions is what a node does with sessions; see session.NodeSessions.
type Sessions interface {
	Status() placement.Status
	// Lose ends all sessions of this node, because another node has taken them over. It
	// writes nothing, and returns when nothing of them writes any more.
	Lose(ctx context.Context)
	// Regain saves what lost sessions have left, under the new lease. It does not wait.
	Regain(ctx context.Context)
	// TakeOver ends sessions whose node has no lease.
	TakeOver(ctx context.Context, stranded []profiles.Session) error
	// Restart starts ended sessions again whose create asked for that, or that other nodes
	// have ended so that they continue elsewhere.
	Restart(ctx context.Context) error
	// Move moves the live sessions of this node, which is drained, to others. It returns when
	// it has tried each once, or ctx has ended.
	Move(ctx context.Context)
}

// Config is what a Keeper needs.
type Config struct {
	Store profiles.NodeStore
	ID    string
	URL   string // where other nodes reach this one
	Facts placement.Facts
	// Extend moves the deadline of the Chromes to a time of Clock.
	Extend func(until time.Duration)
	// Clock counts the time since the machine has started, also while it is suspended.
	Clock func() time.Duration
	Now   func() time.Time
	Log   *slog.Logger

	Lease time.Duration // 0: [profiles.LeaseTime]
}

// Parts of the lease: how often it is renewed and others are looked at, when a failed renewal is
// tried again, how much earlier than the catalogue a node thinks that its lease has ended, and the
// least time between renewals. In the third the wardens freeze its Chromes.
const (
	renewals  = 3
	retries   = 15
	margins   = 15
	distances = 30
)

// Keeper holds the lease of a node. Its methods are safe for concurrent use.
type Keeper struct {
	cfg    Config
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
	wake   chan struct{} // for restarts
	drain  chan struct{} // for moves
	soon   chan struct{} // for a renewal before its time, because the status has changed

	mu       sync.Mutex
	sessions Sessions // nil until Begin
	number   int64
	draining bool
	leaving  bool // the daemon stops
	lost     bool
	valid    time.Duration // until when the node thinks that it holds the lease
	since    time.Duration // since when every renewal succeeded
	missed   bool          // a renewal has failed since the last one that succeeded
	leads    bool          // as of the last look
	seen     sighting      // of the last look
	clockOff bool          // as of the last renewal
}

// Join takes the node's lease and begins to renew it. If a process with another data directory
// has it, Join waits until that lease has ended. If it is renewed, the error is config: two daemons
// have the same ID. The caller must call Close.
func Join(ctx context.Context, cfg Config) (*Keeper, error) {
	cfg.Lease = cmp.Or(cfg.Lease, profiles.LeaseTime)
	k := &Keeper{cfg: cfg, wake: make(chan struct{}, 1), drain: make(chan struct{}, 1), soon: make(chan struct{}, 1)}
	k.ctx, k.cancel = context.WithCancel(context.WithoutCancel(ctx))
	began := cfg.Clock()
	err := k.join(ctx)
	if fault.Is(err, fault.NodeInUse) {
		cfg.Log.Warn("another process has the lease of this node; waiting for its end", "error", err)
	}
	for fault.Is(err, fault.NodeInUse) && cfg.Clock()-began < cfg.Lease+cfg.Lease/margins && ctx.Err() == nil && k.sleep(cfg.Lease/retries, nil) {
		err = k.join(ctx)
	}
	if fault.Is(err, fault.NodeInUse) {
		err = fault.Wrap(err, fault.Config, "cluster.join", fault.MessageOf(err))
	}
	if err != nil {
		k.cancel()
		return nil, err
	}
	k.work.Go(k.renewing)
	return k, nil
}

// Begin gives the keeper the node's sessions, after those of its former process were found. From
// then on it takes over other nodes, and others know how much room it has.
func (k *Keeper) Begin(s Sessions) {
	k.mu.Lock()
	k.sessions = s
	k.mu.Unlock()
	k.Changed()
	k.work.Go(k.looking)
	k.work.Go(k.restarting)
	k.work.Go(k.moving)
}

// Changed has the lease renewed soon, so that other nodes learn of a changed status. It does not
// wait. Renewals keep a distance from each other, so not each change has its own.
func (k *Keeper) Changed() { wake(k.soon) }

// Close stops renewing the lease. With leave it ends it; then no session may be left.
func (k *Keeper) Close(ctx context.Context, leave bool) error {
	k.cancel()
	k.work.Wait()
	if !leave || k.State() != Held {
		return nil
	}
	k.cfg.Log.Info("the node leaves the cluster", "node", k.cfg.ID)
	return k.cfg.Store.Leave(ctx)
}

// ID returns the node's ID.
func (k *Keeper) ID() string { return k.cfg.ID }

// State returns how the lease is.
func (k *Keeper) State() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state()
}

func (k *Keeper) state() State {
	switch {
	case k.lost:
		return Lost
	case k.cfg.Clock() >= k.valid:
		return Lapsed
	}
	return Held
}

// Left returns how long the node still holds its lease; not positive: it does not.
func (k *Keeper) Left() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lost {
		return 0
	}
	return k.valid - k.cfg.Clock()
}

// Draining reports whether the node takes no new sessions.
func (k *Keeper) Draining() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.draining
}

// Check returns an error unless the node holds its lease: node_lost after another node has taken
// over, otherwise catalogue_unavailable.
func (k *Keeper) Check() error {
	switch k.State() {
	case Lost:
		return fault.New(fault.NodeLost, "cluster.check", "%s", fault.NodeLost.Text())
	case Lapsed:
		return fault.New(fault.CatalogueUnavailable, "cluster.check", "the node could not renew its lease in time, so its sessions are frozen; they continue when it can; try again")
	}
	return nil
}

// Leads reports whether this node does what is done once in the cluster. Of the nodes with a
// lease, the one with the lowest number does. A node that thinks that its lease has ended does
// nothing, and others notice only later, so there are never two. A node whose clock is wrong does
// nothing either, since what is done once removes what is old.
func (k *Keeper) Leads() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.leads && !k.clockOff && k.state() == Held
}

// join takes a lease under a new number.
func (k *Keeper) join(ctx context.Context) error {
	asked := k.cfg.Clock()
	facts, err := json.Marshal(k.cfg.Facts)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "cluster.join", "")
	}
	began := k.cfg.Now()
	n, err := k.cfg.Store.Join(ctx, profiles.Node{ID: k.cfg.ID, URL: k.cfg.URL, Facts: facts, Status: k.status(), StartedAt: began.UTC()})
	if err != nil {
		return err
	}
	if err := k.checkClock(n, began); err != nil {
		return errors.Join(err, k.cfg.Store.Leave(ctx))
	}
	k.mu.Lock()
	k.lost, k.number, k.since, k.leads = false, n.Number, asked, false
	drained := k.draining
	k.mu.Unlock()
	if drained { // before the node lost its lease: only a start ends a drain
		if err := k.cfg.Store.Drain(ctx, k.cfg.ID, true); err != nil {
			k.warn("the node was drained, and other nodes do not know it any more; drain it again", err)
		}
		n.Draining = true
	}
	k.hold(asked, n)
	k.cfg.Log.Info("the node has joined the cluster", "node", k.cfg.ID, "url", k.cfg.URL, "number", n.Number, "lease", k.cfg.Lease)
	return nil
}

// status returns the status document; nil before Begin.
func (k *Keeper) status() json.RawMessage {
	k.mu.Lock()
	sessions := k.sessions
	k.mu.Unlock()
	if sessions == nil {
		return nil
	}
	doc, err := json.Marshal(sessions.Status())
	if err != nil {
		return nil // it has only numbers
	}
	return doc
}

// hold records that the lease was taken or renewed by a request at a time. After a failed
// renewal, the keeper counts anew how long it has held the lease: what kept it from the catalogue
// may have kept others from it for longer.
func (k *Keeper) hold(asked time.Duration, n profiles.Node) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.missed || k.cfg.Clock() >= k.valid {
		k.missed, k.since = false, asked
	}
	if n.Draining && !k.draining {
		k.cfg.Log.Info("the node is drained: it takes no new sessions, and moves its live ones to other nodes")
	}
	k.draining = n.Draining || k.leaving
	if k.draining {
		wake(k.drain)
	}
	k.valid = asked + k.cfg.Lease - k.cfg.Lease/margins
	k.cfg.Extend(k.valid)
}

// renewing renews the lease until the keeper is closed.
func (k *Keeper) renewing() {
	for pause := k.cfg.Lease / renewals; k.sleep(pause, k.soon); {
		pause = k.cfg.Lease / renewals
		if !k.renew() {
			pause = k.cfg.Lease / retries
		}
		least := k.cfg.Lease / distances
		if !k.sleep(least, nil) {
			return
		}
		pause -= least
	}
}

// sleep waits for a time, or until woken. It returns false if the keeper is closed first.
func (k *Keeper) sleep(pause time.Duration, woken <-chan struct{}) bool {
	select {
	case <-time.After(pause):
		return k.ctx.Err() == nil
	case <-woken:
		return k.ctx.Err() == nil
	case <-k.ctx.Done():
		return false
	}
}

// renew renews the lease once, and joins again if it was lost.
func (k *Keeper) renew() bool {
	ctx, cancel := context.WithTimeout(k.ctx, k.cfg.Lease/renewals)
	defer cancel()
	before := k.State()
	if before == Lost {
		return k.rejoin()
	}
	asked, began := k.cfg.Clock(), k.cfg.Now()
	n, err := k.cfg.Store.Renew(ctx, k.status())
	if fault.Is(err, fault.NodeLost) {
		return k.lose()
	}
	if err != nil {
		k.mu.Lock()
		k.missed = true
		k.mu.Unlock()
		if k.ctx.Err() == nil {
			k.cfg.Log.Warn("the node's lease could not be renewed; trying again", "left", k.Left(), "error", err)
			if before == Held && k.State() == Lapsed {
				k.cfg.Log.Error("the node's lease has ended: its Chromes are frozen until it can be renewed")
			}
		}
		return false
	}
	if k.State() == Lapsed {
		k.cfg.Log.Warn("the node's lease had ended and nobody has taken over: its sessions continue")
	}
	k.hold(asked, n)
	k.watchClock(n, began)
	return true
}

// lose ends the node's sessions, which others have taken over, and joins again.
func (k *Keeper) lose() bool {
	k.mu.Lock()
	k.lost = true
	sessions := k.sessions
	k.mu.Unlock()
	k.cfg.Log.Error("another node has taken over: this node ends its sessions, and saves what they have as rescue snapshots")
	if sessions != nil {
		sessions.Lose(k.ctx)
	}
	return k.rejoin()
}

func (k *Keeper) rejoin() bool {
	if err := k.join(k.ctx); err != nil {
		if k.ctx.Err() == nil {
			k.cfg.Log.Warn("the node could not join again; trying again", "error", err)
		}
		return false
	}
	k.mu.Lock()
	sessions := k.sessions
	k.mu.Unlock()
	if sessions != nil {
		sessions.Regain(k.ctx)
	}
	return true
}
