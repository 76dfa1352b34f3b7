package mux

import (
	"slices"
	"strconv"
	"sync"
)

// pending is a request that Chrome has not answered. The pipe's reader calls exactly one
// of answer and lost, without a lock, unless the peer disconnects first.
type pending struct {
	peer    *peer
	session string
	method  string
	kept    *kept // nil for most methods; see keep
	answer  func(envelope)
	lost    func() // called when the session or the pipe has ended; may be nil
}

// kept is what the mux needs of a command when Chrome answers it. Most commands need nothing.
type kept struct {
	params   []byte
	by       clientContext // of a creation: whose the page is
	creation uint64        // of a creation: its position in the order of creations, from 1
}

// keep keeps the parameters of a command if the mux needs them when Chrome answers it.
func (p *pending) keep(params []byte) {
	switch p.method {
	case "Target.attachToTarget", "Target.activateTarget", "Target.createTarget":
	default:
		if !grants(p.method) {
			return
		}
	}
	p.kept = &kept{params: params}
}

// params returns the parameters that were kept, or nil.
func (p *pending) params() []byte {
	if p.kept == nil {
		return nil
	}
	return p.kept.params
}

// creates reports whether the request is a creation: a client's Target.createTarget.
func (p *pending) creates() bool { return p.kept != nil && p.kept.by.peer != nil }

// requests holds the requests that Chrome has not answered, by the ID that Chrome sees.
type requests struct {
	mu      sync.Mutex
	err     error // why no more requests can be made; nil while the pipe works
	lastID  int64
	pending map[int64]*pending

	created   uint64   // number of creations that were ever registered
	creations []uint64 // the numbers of those among pending, in order
}

// unansweredCreations returns the numbers of the oldest and the last creation that Chrome has not
// answered; 0 if there is none.
func (r *requests) unansweredCreations() (oldest, last uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.creations); n > 0 {
		return r.creations[0], r.creations[n-1]
	}
	return 0, 0
}

// register records a request and assigns the ID that Chrome will see. CDP IDs have 31
// bits.
func (r *requests) register(p *pending) (int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return 0, r.err
	}
	for {
		r.lastID = r.lastID%(1<<31-1) + 1
		if _, taken := r.pending[r.lastID]; !taken {
			r.pending[r.lastID] = p
			if p.creates() {
				r.created++
				p.kept.creation = r.created
				r.creations = append(r.creations, r.created)
			}
			return r.lastID, nil
		}
	}
}

// forget drops a request whose answer is no longer needed.
func (r *requests) forget(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(id, r.pending[id])
}

// remove drops the request with the ID; p may be nil. The lock is held.
func (r *requests) remove(id int64, p *pending) {
	delete(r.pending, id)
	if p != nil && p.creates() {
		r.creations = slices.DeleteFunc(r.creations, func(n uint64) bool { return n == p.kept.creation })
	}
}

// answered removes and returns the request with the ID; nil if there is none.
func (r *requests) answered(id []byte) *pending {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pending[n]
	r.remove(n, p)
	return p
}

// take removes and returns the requests that match, in no order.
func (r *requests) take(match func(*pending) bool) (taken []*pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.pending {
		if match(p) {
			r.remove(id, p)
			taken = append(taken, p)
		}
	}
	return taken
}

// losses returns the lost functions of a peer's requests.
func (r *requests) losses(p *peer) (lost []func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.pending {
		if w.peer == p && w.lost != nil {
			lost = append(lost, w.lost)
		}
	}
	return lost
}

// end makes later requests fail with err, and returns the pending ones. If end was called
// before, first is false and nothing changes.
func (r *requests) end(err error) (lost map[int64]*pending, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, false
	}
	r.err = err
	lost, r.pending = r.pending, map[int64]*pending{}
	r.creations = nil
	return lost, true
}

// failure returns why no more requests can be made; nil if they can.
func (r *requests) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
