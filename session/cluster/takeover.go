package cluster

import (
	"context"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// looking looks at the other nodes until the keeper is closed: as often as leases are renewed,
// and when the next one ends.
func (k *Keeper) looking() {
	for pause := time.Duration(0); k.sleep(pause); {
		pause = k.look()
	}
}

// look takes over the nodes whose lease has ended, and ends their sessions. It returns when to
// look again.
func (k *Keeper) look() (pause time.Duration) {
	pause = k.cfg.Lease / renewals
	ctx, cancel := context.WithTimeout(k.ctx, k.cfg.Lease)
	defer cancel()
	all, err := k.cfg.Store.Nodes(ctx)
	if err != nil {
		k.failed("the nodes of the cluster cannot be read; trying again", err)
		return pause
	}
	may := k.learn(all)
	for _, n := range all {
		switch {
		case n.ID == k.cfg.ID || n.Number == 0:
		case n.Left > 0:
			// A little later, because other nodes look then too.
			pause = min(pause, n.Left+k.cfg.Lease/100)
		case may:
			taken, err := k.cfg.Store.TakeOver(ctx, n.ID, n.Number)
			if err != nil {
				k.failed("a node could not be taken over; trying again", err)
			}
			if taken {
				k.cfg.Log.Warn("this node has taken over another one, whose lease has ended", "node", n.ID, "number", n.Number)
			}
		}
	}
	k.endStranded(ctx)
	return pause
}

// learn notes whether this node leads. It reports whether it may take over others: it has held
// its lease for a whole one without a gap, so that all others had time to renew theirs.
func (k *Keeper) learn(all []profiles.Node) (may bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	leads := true
	for _, n := range all {
		if n.Number != 0 && n.Left > 0 && n.Number < k.number {
			leads = false
		}
	}
	if leads && !k.leads {
		k.cfg.Log.Info("this node does what is done once in the cluster", "node", k.cfg.ID)
	}
	k.leads = leads
	return k.state() == Held && k.cfg.Clock()-k.since >= k.cfg.Lease
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
		k.failed("sessions of a node that was taken over could not be ended; trying again", err)
	}
	select {
	case k.wake <- struct{}{}:
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
		if k.State() != Held {
			continue
		}
		if err := k.sessions.Restart(k.ctx); err != nil {
			k.failed("a session of a node that was taken over could not be started again; trying again", err)
		}
	}
}

func (k *Keeper) failed(what string, err error) {
	if k.ctx.Err() == nil {
		k.cfg.Log.Warn(what, "error", err)
	}
}
