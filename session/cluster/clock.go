package cluster

import (
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// maxClockOff is how much a node's clock may differ from the database's. Calls between nodes are
// refused only if their clocks differ by a minute.
const maxClockOff = 5 * time.Second

// checkClock compares this node's clock with the database's. began is the node's time before the
// request that has returned n. The error is config.
func (k *Keeper) checkClock(n profiles.Node, began time.Time) error {
	ended := k.cfg.Now()
	switch ahead, behind := began.Sub(n.Clock), n.Clock.Sub(ended); {
	case ahead > maxClockOff:
		return clockError(ahead, "ahead of")
	case behind > maxClockOff:
		return clockError(behind, "behind")
	}
	return nil
}

func clockError(off time.Duration, where string) error {
	return fault.New(fault.Config, "cluster.clock", "the clock of this machine is %s %s that of the database; they may differ by %s; set both by one time server",
		off.Round(time.Second), where, maxClockOff)
}

// watchClock notes whether the clock of a node that has joined is wrong.
func (k *Keeper) watchClock(n profiles.Node, began time.Time) {
	err := k.checkClock(n, began)
	k.mu.Lock()
	was := k.clockOff
	k.clockOff = err != nil
	k.mu.Unlock()
	switch {
	case err != nil && !was:
		k.cfg.Log.Error("the node's clock is wrong: it does not remove what is old, and other nodes may refuse its calls", "error", err)
	case err == nil && was:
		k.cfg.Log.Info("the node's clock is right again")
	}
}
