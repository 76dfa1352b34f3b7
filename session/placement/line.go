package placement

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/quota"
)

// reportTime is how long a node takes at most to report that a place is taken: its create gets
// there, and it renews its lease.
const reportTime = time.Second

// Waiter is a create that waits for a place on any node.
type Waiter struct {
	Wanted
	UserID, KeyID string        // who takes turns
	Limits        []quota.Limit // of the sessions of both
	Refused       error         // why it got no place before it waits; nil: it has not asked
}

// Line lets the creates that came to this node wait, in one order with those of all nodes. The
// catalogue has the order; see [profiles.WaitingStore]. While a create waits here, and only then,
// the line looks once a second if a node has a free place and whose turn it is. A create whose turn
// it is asks the nodes for a place. Its methods are safe for concurrent use. A daemon that is no node
// has a nil Line, of which only Count, Lose and Close may be called; they do nothing.
type Line struct {
	peers  *Peers
	store  profiles.WaitingStore
	pause  time.Duration // between two looks
	log    *slog.Logger
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	reading chan struct{}            // holds one token while all uses the next two
	others  []profiles.WaitingCreate // the list that all has read
	read    time.Time                // when it was read

	mu    sync.Mutex
	own   map[string]*waiter
	looks bool // a goroutine looks
}

// waiter is a create that waits here.
type waiter struct {
	turn chan struct{} // gets a value when it is its turn
	lost chan struct{} // closed when the node has lost its lease
	asks bool          // it asks for a place, and does not wait; the line's lock is held
}

// NewLine makes the Line of a node. pause is the time between two looks at who waits, and how long
// a create that got its turn and no place lets others go first; 0: a second.
func NewLine(p *Peers, store profiles.WaitingStore, pause time.Duration, log *slog.Logger) *Line {
	l := &Line{peers: p, store: store, pause: cmp.Or(pause, time.Second), log: log, reading: make(chan struct{}, 1), own: map[string]*waiter{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Count returns how many creates wait here.
func (l *Line) Count() (n int) {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count()
}

// count is Count. The caller holds the lock.
func (l *Line) count() (n int) {
	for _, w := range l.own {
		if !w.asks {
			n++
		}
	}
	return n
}

// Lose ends the wait of all creates with node_lost: other nodes no longer count them.
func (l *Line) Lose() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, w := range l.own {
		close(w.lost)
		delete(l.own, id)
	}
}

// Close ends the wait of all creates with shutting_down.
func (l *Line) Close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.cancel()
	l.mu.Unlock()
	l.work.Wait()
}

// Wait waits until a create has a place, or ctx ends. When it is its turn, ask asks the nodes for
// one. If it reports that all have refused, the create lets others go first for a pause, and
// waits again. If ctx ends first, the error is too_many_sessions, or quota_exceeded if a limit of
// the create is reached.
func (l *Line) Wait(ctx context.Context, is Waiter, ask func() (refused bool, err error)) error {
	const op = "placement.wait"
	row := profiles.WaitingCreate{ID: profiles.NewID(), UserID: is.UserID, KeyID: is.KeyID, Engine: is.Engine, Chrome: is.Chrome, Restores: is.SnapshotID != "",
		MostOfUser: mostOf(is.Limits, quota.User, is.UserID), MostOfKey: mostOf(is.Limits, quota.Key, is.KeyID)}
	w := &waiter{turn: make(chan struct{}, 1), lost: make(chan struct{})}
	l.add(row.ID, w)
	defer l.remove(row.ID)
	since, err := l.store.BeginWaiting(ctx, row, 0)
	if err != nil && ctx.Err() == nil {
		return err
	}
	row.Since = since
	l.watch()
	for {
		var again bool
		select {
		case <-w.turn:
			if again, err = l.takeTurn(ctx, w, row, ask); !again {
				return err
			}
			continue
		case <-ctx.Done():
			err = l.timeout(ctx, row.ID, is, err)
		case <-w.lost:
			err = fault.New(fault.NodeLost, op, "%s", fault.NodeLost.Text())
		case <-l.ctx.Done():
			err = fault.New(fault.ShuttingDown, op, "the daemon is shutting down")
		}
		l.end(ctx, row.ID)
		return err
	}
}

// takeTurn asks for a place. again reports that the create still waits; the error is then why it
// got none.
func (l *Line) takeTurn(ctx context.Context, w *waiter, row profiles.WaitingCreate, ask func() (bool, error)) (again bool, err error) {
	taken, err := l.store.TakeTurn(ctx, row.ID, reportTime)
	if fault.Is(err, fault.NodeLost) {
		return false, err
	}
	if taken {
		l.asks(w, true)
		refused, err := ask() // with a WebSocket, it lasts as long as that
		if !refused || ctx.Err() != nil {
			return refused, err
		}
		defer l.watch()
		defer l.asks(w, false)
		return l.beginAgain(ctx, row, l.pause, err)
	}
	return l.beginAgain(ctx, row, 0, err) // the turn may have been recorded although there was an error
}

// beginAgain records that a create waits, until the catalogue answers. why is what it returns then.
func (l *Line) beginAgain(ctx context.Context, row profiles.WaitingCreate, pause time.Duration, why error) (again bool, err error) {
	for {
		_, err := l.store.BeginWaiting(ctx, row, pause)
		switch {
		case fault.Is(err, fault.NodeLost):
			return false, err
		case err == nil || ctx.Err() != nil:
			return true, why
		}
		select {
		case <-ctx.Done():
		case <-l.ctx.Done():
			return true, why
		case <-time.After(l.pause):
		}
	}
}

// end removes a create that no longer waits. What cannot be removed now is removed later; see
// [claims.Releases].
func (l *Line) end(ctx context.Context, id string) {
	if err := l.store.EndWaiting(context.WithoutCancel(ctx), id); err != nil && !fault.Is(err, fault.NodeLost) {
		l.log.Warn("a create that no longer waits could not be removed from those that do; trying again", "error", err)
	}
}

// timeout returns the error of a create whose time is over. last is why it got no place at its
// last turn; nil: it had none.
func (l *Line) timeout(ctx context.Context, id string, is Waiter, last error) error {
	const op = "placement.wait"
	all, err := l.all(context.WithoutCancel(ctx)) // shared: thousands of creates may end at once
	if err != nil {
		all = nil // the code is less exact then
	}
	listed := false
	for _, w := range all {
		if w.ID != id {
			continue
		}
		listed = true
		for _, limit := range is.Limits {
			has := w.OfUser
			if limit.Kind == quota.Key {
				has = w.OfKey
			}
			if limit.Reached(has) {
				return limit.Error(op, has)
			}
		}
	}
	switch {
	case fault.Is(last, fault.QuotaExceeded):
		return last
	case !listed && !fault.Is(last, fault.TooManySessions) && fault.Is(is.Refused, fault.QuotaExceeded):
		return is.Refused // the list was read before it began to wait
	}
	return fault.New(fault.TooManySessions, op, "all session slots of all nodes stayed in use for wait_seconds; end a session, or add a node")
}

// mostOf returns the quota of a user or a key; nil: there is none.
func mostOf(limits []quota.Limit, kind quota.Kind, id string) *int64 {
	for _, limit := range limits {
		if limit.Kind == kind && limit.ID == id {
			return limit.Most
		}
	}
	return nil
}

// asks records whether a create asks for a place.
func (l *Line) asks(w *waiter, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.asks = is; !is {
		return
	}
	select {
	case <-w.turn: // of a look while the turn was being recorded; it would end the next pause
	default:
	}
}

func (l *Line) add(id string, w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own[id] = w
}

func (l *Line) remove(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.own, id)
}
