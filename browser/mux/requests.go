package mux

import (
	"strconv"
	"sync"
)

// pending is a request that Chrome has not answered. Exactly one of answer and
// lost is called, from the pipe's reader and without a lock, unless the peer
// leaves first.
type pending struct {
	peer    *peer
	session string
	method  string
	params  []byte // of a command that sets permissions or attaches
	answer  func(envelope)
	lost    func() // the session or the pipe went away; may be nil
}

// requests are those that Chrome has not answered, by the ID that Chrome sees.
type requests struct {
	mu      sync.Mutex
	err     error // why no more can be made; nil while the pipe is there
	lastID  int64
	pending map[int64]*pending
}

// register remembers a request and gives it the id that Chrome will see: CDP
// ids are 31 bits wide.
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
			return r.lastID, nil
		}
	}
}

// forget drops a request whose answer nobody waits for any more.
func (r *requests) forget(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, id)
}

// answered removes and returns the request that has the ID; nil where there is none.
func (r *requests) answered(id []byte) *pending {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pending[n]
	delete(r.pending, n)
	return p
}

// take removes and returns the requests that match, in no order.
func (r *requests) take(match func(*pending) bool) (taken []*pending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, p := range r.pending {
		if match(p) {
			delete(r.pending, id)
			taken = append(taken, p)
		}
	}
	return taken
}

// losses are the lost functions of a peer's requests.
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

// end refuses requests from now on with an error, and returns those that wait. first
// is false where it was called before; then nothing changes.
func (r *requests) end(err error) (lost map[int64]*pending, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, false
	}
	r.err = err
	lost, r.pending = r.pending, map[int64]*pending{}
	return lost, true
}

// failure is why no more requests can be made; nil where they can.
func (r *requests) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
