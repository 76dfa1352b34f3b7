// Package fair decides which Chromes give way when the processors are busy.
//
// The scheduler gives each Chrome an equal share. So a user with many busy sessions would
// take most of the machine. A user whose Chromes together have used more than an equal part
// of the processors for some seconds yields: its Chromes get what all other programs of the
// machine leave. If that is next to nothing, they have a small share until they have got a
// little. A single Chrome that has used more than an equal part has a small share too, so that
// the other sessions of its user go first. All ends when the use has fallen.
package fair

import (
	"sync"
	"time"
)

const (
	// leastSharing is the least number that processors are divided by: a user that is alone may
	// take half of them before it counts as busy, so that it yields as soon as there is another.
	leastSharing = 2
	// leastPart is the least part, in processors: what a page may use that is drawn all the
	// time.
	leastPart = 0.25
	// much is how many equal parts of all use are much more than one.
	much = 1.5
	// active is the use from which a user or a Chrome counts as one of those that share the
	// processors.
	active = 0.05
	// little is what a user that yields gets at least, in processors, so that its pages do
	// not stand still while other programs keep all processors busy.
	little = 0.1
)

// Chrome is a Chrome whose share of the processors can be changed.
type Chrome interface {
	// UsedCPU returns the CPU time that it has used so far; false if that is not known. Then
	// the Chrome counts as idle.
	UsedCPU() (time.Duration, bool)
	// Busy gives it a small share of busy processors, or an ordinary one again.
	Busy(on bool)
	// Yield gives it only what others leave of the processors, or the share that Busy has set.
	Yield(on bool)
}

// Users divides the processors among users. Its methods are safe for concurrent use. With a
// nil Users nobody yields.
type Users struct {
	processors float64
	now        func() time.Time

	mu    sync.Mutex
	users map[string]*user // with Chromes, or busy lately
}

// user is a user with its Chromes.
type user struct {
	meter
	chromes map[*Member]bool
}

// New returns a Users without Chromes, for a machine with some processors.
func New(processors int, now func() time.Time) *Users {
	return &Users{processors: float64(processors), now: now, users: map[string]*user{}}
}

// Member is a Chrome that belongs to a user.
type Member struct {
	of     *Users
	owner  string
	chrome Chrome

	meter
	used     time.Duration // until the last measurement
	yielding bool
	slowed   bool
	left     bool
}

// Join adds a Chrome of a user. The caller calls Measure about twice a second, and Leave when
// the Chrome has ended. What the Chrome has used until now does not count. If the user yields,
// so does the Chrome at once.
func (u *Users) Join(owner string, chrome Chrome) *Member {
	if u == nil {
		return nil
	}
	used, _ := chrome.UsedCPU()
	u.mu.Lock()
	defer u.mu.Unlock()
	m := &Member{of: u, owner: owner, chrome: chrome, used: used}
	of := u.users[owner]
	if of == nil {
		of = &user{chromes: map[*Member]bool{}}
		u.users[owner] = of
	}
	of.chromes[m] = true
	u.divide()
	return m
}

// Measure adds what the Chrome has used since the last call.
func (m *Member) Measure() {
	if m == nil {
		return
	}
	used, known := m.chrome.UsedCPU()
	if !known {
		return
	}
	u := m.of
	u.mu.Lock()
	defer u.mu.Unlock()
	if m.left {
		return
	}
	// The sum falls when a process ends that nobody has waited for yet.
	more := max(used-m.used, 0)
	m.used = used
	m.add(u.now(), more)
	u.users[m.owner].add(u.now(), more)
	u.divide()
}

// Leave removes the Chrome. What it has used still counts as its user's.
func (m *Member) Leave() {
	if m == nil {
		return
	}
	u := m.of
	u.mu.Lock()
	defer u.mu.Unlock()
	if m.left {
		return
	}
	m.left = true
	delete(u.users[m.owner].chromes, m)
	u.divide()
}

// Yields reports whether the Chromes of a user get only what others leave.
func (u *Users) Yields(owner string) bool {
	if u == nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.divide()
	of := u.users[owner]
	return of != nil && of.busy && u.others(owner)
}

// divide decides who yields, and changes the shares of those Chromes for which that is new.
// The caller holds the lock.
func (u *Users) divide() {
	now := u.now()
	var users, chromes []*meter
	for owner, of := range u.users {
		of.decay(now)
		if len(of.chromes) == 0 && !of.busy && of.rate < active/10 {
			delete(u.users, owner)
			continue
		}
		users = append(users, &of.meter)
		for m := range of.chromes {
			m.decay(now)
			chromes = append(chromes, &m.meter)
		}
	}
	judge(users, now, u.processors)
	judge(chromes, now, u.processors)
	using := 0 // Chromes that share the processors
	for _, m := range chromes {
		if m.rate > active {
			using++
		}
	}
	for owner, of := range u.users {
		behind := of.busy && u.others(owner)
		yields := behind && of.lately > little
		for m := range of.chromes {
			if slowed := m.busy && using > 1 || behind; m.slowed != slowed {
				m.slowed = slowed
				m.chrome.Busy(slowed)
			}
			if m.yielding != yields {
				m.yielding = yields
				m.chrome.Yield(yields)
			}
		}
	}
}

// others reports whether a user other than the given one has a Chrome.
func (u *Users) others(than string) bool {
	for owner, of := range u.users {
		if owner != than && len(of.chromes) > 0 {
			return true
		}
	}
	return false
}
