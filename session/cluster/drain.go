package cluster

import (
	"context"
)

// moving moves the sessions of a node that is drained, after each renewal, because those that
// stayed may find a node later.
func (k *Keeper) moving() {
	for {
		select {
		case <-k.drain:
		case <-k.ctx.Done():
			return
		}
		k.mu.Lock()
		now := k.draining && !k.leaving && k.state() == Held
		k.mu.Unlock()
		if now {
			k.sessions.Move(k.ctx)
		}
	}
}

// Leave drains the node because its daemon stops, also if the catalogue does not answer. From
// then on the keeper moves no sessions by itself, and starts none again.
func (k *Keeper) Leave(ctx context.Context) {
	k.mu.Lock()
	k.draining, k.leaving = true, true
	k.mu.Unlock()
	if err := k.cfg.Store.Drain(ctx, k.cfg.ID, true); err != nil {
		k.warn("other nodes do not know that this one stops; they find its sessions when it has ended them", err)
	}
}
