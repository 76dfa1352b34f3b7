package launch

import (
	"sync"

	"github.com/stasisd/stasis/fault"
)

// UIDRange is the range of user IDs that a daemon that runs as root assigns to its
// Chromes, one each: Base, Base+1, … The group ID is the same number. The IDs need no
// entry in /etc/passwd, and nothing else may use them.
type UIDRange struct {
	Base, Count int
}

// DefaultUIDs is the range that is used when none is set.
var DefaultUIDs = UIDRange{Base: 210000, Count: 1000}

// uidPool assigns UIDs. It goes through the range in a circle, so that a UID is reused as
// late as possible.
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

// take returns a UID that is not taken and that no process runs as.
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
	return 0, fault.New(fault.TooManySessions, "launch.uid", "all %d user IDs for browsers are in use; raise --uid-count", p.uids.Count)
}

// reserve marks a UID as taken until give. A UID outside the range is ignored.
func (p *uidPool) reserve(uid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.contains(uid) {
		p.taken[uid] = true
	}
}

// give makes a UID free again. It may be called twice.
func (p *uidPool) give(uid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, uid)
}

// aliveUIDs returns the UIDs of all processes of the machine.
func aliveUIDs() map[int]bool {
	uids := map[int]bool{}
	for _, pid := range pids() {
		uids[uidOf(pid)] = true
	}
	return uids
}

// contains reports whether the UID is in the range.
func (p *uidPool) contains(uid int) bool {
	return uid >= p.uids.Base && uid < p.uids.Base+p.uids.Count
}
