package mux

import "sync"

// DefaultMemory is the limit of a [Budget] that has none, in bytes.
const DefaultMemory = 256 << 20

// Budget bounds, in bytes, what the daemon holds of messages: those that arrive
// in pieces, from clients and from Chromes, and those that wait for a client or
// a Chrome that reads slowly. All Muxes of a daemon share one. Where it is
// used up, the Mux that holds most gives way: its client that holds most is
// closed with CloseTooSlow. The others are not affected.
type Budget struct {
	mu       sync.Mutex
	limit    int
	used     int
	evicted  int
	accounts map[*account]struct{}
}

// NewBudget makes a Budget of so many bytes; 0 means [DefaultMemory].
func NewBudget(limit int) *Budget {
	if limit == 0 {
		limit = DefaultMemory
	}
	return &Budget{limit: limit, accounts: map[*account]struct{}{}}
}

// Use is how many bytes are held now, and how often a holder had to give way.
func (b *Budget) Use() (bytes, evicted int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.evicted
}

// account is what one peer holds of a Budget. A nil account is not counted.
type account struct {
	budget *Budget
	of     *Mux
	held   int
	over   bool   // closed, or made to give way
	evict  func() // makes the holder give way; it waits for nothing
}

func (b *Budget) account(of *Mux, evict func()) *account {
	a := &account{budget: b, of: of, evict: evict}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts[a] = struct{}{}
	return a
}

// take counts n bytes more. It is false when the account has given way.
func (a *account) take(n int) bool {
	if a == nil {
		return true
	}
	b := a.budget
	b.mu.Lock()
	if a.over {
		b.mu.Unlock()
		return false
	}
	a.held += n
	b.used += n
	var gone []*account
	for b.used > b.limit {
		most := b.most()
		most.leave()
		b.evicted++
		gone = append(gone, most)
	}
	over := a.over
	b.mu.Unlock()
	for _, g := range gone {
		g.evict()
	}
	return !over
}

// most is the largest account of the Mux that holds most. There is one: the
// sum of all is over the limit.
func (b *Budget) most() *account {
	sums := map[*Mux]int{}
	for a := range b.accounts {
		sums[a.of] += a.held
	}
	var most *account
	for a := range b.accounts {
		if most == nil || sums[a.of] > sums[most.of] || a.of == most.of && a.held > most.held {
			most = a
		}
	}
	return most
}

// leave gives everything back, under the lock.
func (a *account) leave() {
	a.over = true
	a.budget.used -= a.held
	a.held = 0
	delete(a.budget.accounts, a)
}

// give gives n bytes back.
func (a *account) give(n int) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	n = min(n, a.held)
	a.held -= n
	a.budget.used -= n
}

// close gives everything back.
func (a *account) close() {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if !a.over {
		a.leave()
	}
}
