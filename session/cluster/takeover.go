package cluster

import (
	"context"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// looking looks at the other nodes until the keeper is closed: as often as leases are renewed,
// and when the next one ends.
func (k *Keeper) looking() {
	for pause := time.Duration(0); k.sleep(pause, nil); {
		pause = k.look()
	}
}

// look takes over the nodes whose lease has ended, and ends their sessions. It returns when to
// look again.
func (k *Keeper) look() (pause time.Duration) {
	pause = k.cfg.Lease / renewals
	ctx, cancel := context.WithTimeout(k.ctx, k.cfg.Lease)
	defer cancel()
	asked := k.cfg.Clock()
	all, err := k.cfg.Store.Nodes(ctx)
	if err != nil {
		k.warn("the nodes of the cluster cannot be read; trying again", err)
		return pause
	}
	may := k.learn(all, asked)
	for _, n := range all {
		switch {
		case n.ID == k.cfg.ID || n.Number == 0:
		case n.Left > 0:
			// A little later, because other nodes look then too.
			pause = min(pause, n.Left+k.cfg.Lease/100)
		case may:
			taken, err := k.cfg.Store.TakeOver(ctx, n.ID, n.Number)
			if err != nil {
				k.warn("a node could not be taken over; trying again", err)
			}
			if taken {
				k.cfg.Log.Warn("this node has taken over another one, whose lease has ended", "node", n.ID, "number", n.Number)
			}
		}
	}
	k.endStranded(ctx)
	return pause
}

// sighting is what a look has found: how long the lease of each number is still valid.
type sighting struct {
	asked time.Duration // when the look began
	left  map[int64]time.Duration
}

// learn notes what a look that began at a time has found, and whether this node leads. It reports
// whether the node may take over others: in the time of a whole lease it has renewed its own
// each time, and the catalogue's clock was not moved, so that all others could renew theirs.
func (k *Keeper) learn(all []profiles.Node, asked time.Duration) (may bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.seen
	k.seen = sighting{asked, map[int64]time.Duration{}}
	leads := true
	for _, n := range all {
		if n.Number != 0 && n.Left > 0 && n.Number < k.number {
			leads = false
		}
		k.seen.left[n.Number] = n.Left
		// A lease gets shorter by the time that has passed. If it is shorter than that, the
		// catalogue's clock was moved.
		if before, ok := was.left[n.Number]; ok && n.Number != 0 && before-n.Left > k.cfg.Clock()-was.asked+k.cfg.Lease/margins {
			k.cfg.Log.Warn("the clock of the catalogue was moved forward: this node takes over no other until all had time to renew their leases")
			k.since = k.cfg.Clock()
		}
	}
	if leads && !k.leads {
		k.cfg.Log.Info("this node does what is done once in the cluster", "node", k.cfg.ID)
	}
	k.leads = leads
	return k.state() == Held && !k.missed && k.cfg.Clock()-k.since >= k.cfg.Lease
}

// endStranded ends the sessions whose node has no lease, and has those started again that asked
// for it.
func (k *Keeper) endStranded(ctx context.Context) {
	if k.State() != Held {
		return
	}
	stranded, err := k.cfg.Store.Stranded(ctx)
	if err == nil && len(stranded) > 0 {
		err = k.sessions.TakeOver(ctx, stranded)
	}
	if err != nil {
		k.warn("sessions of a node that was taken over could not be ended; trying again", err)
	}
	wake(k.wake)
}

// wake gives a channel a value, unless it has one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is woken already
	}
}

// restarting starts sessions again after each look.
func (k *Keeper) restarting() {
	for {
		select {
		case <-k.wake:
		case <-k.ctx.Done():
			return
		}
		if k.State() != Held || k.Draining() {
			continue
		}
		if err := k.sessions.Restart(k.ctx); err != nil {
			k.warn("a session of a node that was taken over could not be started again; trying again", err)
		}
	}
}

func (k *Keeper) warn(what string, err error) {
	if k.ctx.Err() == nil {
		k.cfg.Log.Warn(what, "error", err)
	}
}
