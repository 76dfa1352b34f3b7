package launch

import (
	"sync"

	"github.com/stasisd/stasis/fault"
)

// UIDRange is the range of user IDs that a daemon run by root gives to its
// Chromes, one each: Base, Base+1, … The group ID is the same number. None of
// them needs an entry in /etc/passwd, and nothing else may use them.
type UIDRange struct {
	Base, Count int
}

// DefaultUIDs is the range that is used when none is set.
var DefaultUIDs = UIDRange{Base: 210000, Count: 1000}

// uidPool hands out uids. It goes round the range rather than back to the
// first free one, so that a uid rests for as long as possible.
type uidPool struct {
	mu    sync.Mutex
	uids  UIDRange
	next  int // offset in the range
	taken map[int]bool
	alive func() map[int]bool // uids under which a process runs
}

func newUIDPool(uids UIDRange, alive func() map[int]bool) *uidPool {
	return &uidPool{uids: uids, taken: map[int]bool{}, alive: alive}
}

// take returns a uid that was not handed out and under which no process runs.
func (p *uidPool) take() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	alive := p.alive()
	for i := range p.uids.Count {
		offset := (p.next + i) % p.uids.Count
		uid := p.uids.Base + offset
		if !p.taken[uid] && !alive[uid] {
			p.taken[uid] = true
			p.next = (offset + 1) % p.uids.Count
			return uid, nil
		}
	}
	return 0, fault.New(fault.TooManySessions, "launch.uid", "all %d user IDs for browsers are in use", p.uids.Count)
}

// hold takes a uid out of those that are handed out, until it is given back. One
// outside the range is none of them.
func (p *uidPool) hold(uid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holds(uid) {
		p.taken[uid] = true
	}
}

// give takes a uid back. Giving one twice is the same as giving it once.
func (p *uidPool) give(uid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, uid)
}

// aliveUIDs returns the uids of the machine's processes.
func aliveUIDs() map[int]bool {
	uids := map[int]bool{}
	for _, pid := range pids() {
		uids[uidOf(pid)] = true
	}
	return uids
}

// holds reports whether the uid lies in the range.
func (p *uidPool) holds(uid int) bool {
	return uid >= p.uids.Base && uid < p.uids.Base+p.uids.Count
}
