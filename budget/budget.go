// Package budget limits the memory that the daemon holds for its clients. It imports no
// other package of Stasis.
package budget

import "sync"

// DefaultMemory is the limit, in bytes, of a [Budget] that is made without one.
const DefaultMemory = 256 << 20

// Budget limits the bytes that the daemon holds for slow clients: incoming CDP messages
// and HTTP bodies, and messages and answers that wait for a reader. A daemon has one
// Budget. Each account has an owner: a session's multiplexer or an API key. If the limit
// is exceeded, the owner that holds most loses its largest account. Other owners are not
// affected. A Budget is safe for concurrent use.
type Budget struct {
	mu       sync.Mutex
	limit    int
	used     int
	evicted  int
	accounts map[*Account]struct{}
}

// New makes a Budget of limit bytes; 0 means [DefaultMemory].
func New(limit int) *Budget {
	if limit == 0 {
		limit = DefaultMemory
	}
	return &Budget{limit: limit, accounts: map[*Account]struct{}{}}
}

// Use returns how many bytes are held now, and how many accounts were evicted so far.
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
	closed bool   // closed or evicted
	evict  func() // makes the client release its memory, without waiting
}

// Open makes an account for an owner, which can be any comparable value. evict is called
// when the account is evicted. It must make its client release the memory, and must not
// wait. A nil Budget returns a nil Account.
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

// Take counts n more bytes. It returns false if the account has been evicted or closed.
func (a *Account) Take(n int) bool {
	if a == nil {
		return true
	}
	b := a.budget
	b.mu.Lock()
	if a.closed {
		b.mu.Unlock()
		return false
	}
	a.held += n
	b.used += n
	var evicted []*Account
	for b.used > b.limit {
		largest := b.largest()
		largest.releaseAll()
		b.evicted++
		evicted = append(evicted, largest)
	}
	closed := a.closed
	b.mu.Unlock()
	for _, g := range evicted {
		g.evict()
	}
	return !closed
}

// largest returns the largest account of the owner that holds most. There is one, because
// the sum of all exceeds the limit.
func (b *Budget) largest() *Account {
	sums := map[any]int{}
	for a := range b.accounts {
		sums[a.owner] += a.held
	}
	var largest *Account
	for a := range b.accounts {
		if largest == nil || sums[a.owner] > sums[largest.owner] || a.owner == largest.owner && a.held > largest.held {
			largest = a
		}
	}
	return largest
}

// releaseAll frees everything. The caller holds the lock.
func (a *Account) releaseAll() {
	a.closed = true
	a.budget.used -= a.held
	a.held = 0
	delete(a.budget.accounts, a)
}

// Release releases n bytes.
func (a *Account) Release(n int) {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	n = min(n, a.held)
	a.held -= n
	a.budget.used -= n
}

// Close releases everything and closes the account.
func (a *Account) Close() {
	if a == nil {
		return
	}
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	if !a.closed {
		a.releaseAll()
	}
}
