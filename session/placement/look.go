package placement

import (
	"context"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Before reports whether creates that wait go before one that does not wait yet.
func (l *Line) Before(ctx context.Context, w Wanted) (bool, error) {
	all, err := l.all(ctx)
	if err != nil {
		return false, err
	}
	t := newTurns(all)
	if len(t.waiting) == 0 {
		return false, nil
	}
	nodes, err := l.peers.withRoom(ctx, peersAge)
	if err != nil {
		return false, err
	}
	return t.before(w, nodes), nil
}

// all lists who waits and had a turn. Calls share a list that is at most a second old, unless it is
// empty: many creates that are refused cost little, and nobody who waits is missed.
func (l *Line) all(ctx context.Context) ([]profiles.WaitingCreate, error) {
	select {
	case l.reading <- struct{}{}:
		defer func() { <-l.reading }()
	case <-ctx.Done():
		return nil, fault.Wrap(ctx.Err(), fault.Timeout, "placement.before", "the request was cancelled")
	}
	now := l.peers.now()
	if len(l.others) > 0 && now.Sub(l.read) < peersAge {
		return l.others, nil
	}
	all, err := l.store.Waiting(ctx)
	if err != nil {
		return nil, err
	}
	l.others, l.read = all, now
	return all, nil
}

// watch looks while creates wait.
func (l *Line) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.looks && l.ctx.Err() == nil {
		l.looks = true
		l.work.Go(l.looking)
	}
}

func (l *Line) looking() {
	for {
		if err := l.look(); err != nil && l.ctx.Err() == nil {
			l.log.Warn("the creates that wait for a place cannot be read; trying again", "error", err)
		}
		select {
		case <-time.After(l.pause):
		case <-l.ctx.Done():
		}
		l.mu.Lock()
		if l.count() == 0 || l.ctx.Err() != nil {
			l.looks = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}

// look lets those creates of this node whose turn it is ask for a place. It reads who waits only
// if a node has a free place.
func (l *Line) look() error {
	nodes, err := l.peers.withRoom(l.ctx, 0)
	if err != nil || !anyFree(nodes) {
		return err
	}
	all, err := l.store.Waiting(l.ctx)
	if err != nil {
		return err
	}
	ids := newTurns(all).give(nodes)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		if w := l.own[id]; w != nil && !w.asks {
			select {
			case w.turn <- struct{}{}:
			default: // it has not taken the last one yet
			}
		}
	}
	return nil
}
