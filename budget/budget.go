// Package budget bounds the memory that the daemon holds for its clients. It is a leaf.
package budget

import "sync"

// DefaultMemory is the limit of a [Budget] that has none, in bytes.
const DefaultMemory = 256 << 20

// Budget bounds, in bytes, what the daemon holds for clients that are slow: CDP
// messages and HTTP bodies that arrive, and messages and answers that wait for a
// reader. A daemon has one. Each account has an owner: a session's multiplexer or an
// API key. Where the budget is used up, the owner that holds most gives way with its
// largest account. The others are not affected. It is safe for concurrent use.
type Budget struct {
	mu       sync.Mutex
	limit    int
	used     int
	evicted  int
	accounts map[*Account]struct{}
}

// New makes a Budget of so many bytes; 0 means [DefaultMemory].
func New(limit int) *Budget {
	if limit == 0 {
		limit = DefaultMemory
	}
	return &Budget{limit: limit, accounts: map[*Account]struct{}{}}
}

// Use is how many bytes are held now, and how often a holder had to give way.
func (b *Budget) Use() (bytes, evicted int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.evicted
}

// Account is what one client holds of a Budget. A nil Account counts nothing.
type Account struct {
	budget *Budget
	owner  any
	held   int
	over   bool   // closed, or made to give way
	evict  func() // makes the holder give way; it waits for nothing
}

// Open makes an account of an owner, which can be any comparable value. evict is
// called when the account has to give way: it must make its client let go of the
// memory, and must not wait. A nil Budget gives a nil Account.
func (b *Budget) Open(owner any, evict func()) *Account {
	if b == nil {
		return nil
	}
	a := &Account{budget: b, owner: owner, evict: evict}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.accounts[a] = struct{}{}
	return a
}

// Take counts n bytes more. It is false when the account has given way.
func (a *Account) Take(n int) bool {
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
	var gone []*Account
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

// most is the largest account of the owner that holds most. There is one: the
// sum of all is over the limit.
func (b *Budget) most() *Account {
	sums := map[any]int{}
	for a := range b.accounts {
		sums[a.owner] += a.held
	}
	var most *Account
	for a := range b.accounts {
		if most == nil || sums[a.owner] > sums[most.owner] || a.owner == most.owner && a.held > most.held {
			most = a
		}
	}
	return most
}

// leave gives everything back, under the lock.
func (a *Account) leave() {
	a.over = true
	a.budget.used -= a.held
	a.held = 0
	delete(a.budget.accounts, a)
}

// Give gives n bytes back.
func (a *Account) Give(n int) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	n = min(n, a.held)
	a.held -= n
	a.budget.used -= n
}

// Close gives everything back.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if !a.over {
		a.leave()
	}
}
