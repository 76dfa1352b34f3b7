package api

import (
	"crypto/sha256"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
)

// An address may try this many keys or tickets that are not right, and then
// another one each time that attemptsEvery has passed.
const (
	attemptsBurst      = 50
	attemptsEvery      = 6 * time.Second
	attemptsRetryAfter = "6"
)

// recently is how long a key that was right from an address passes from there,
// whatever others try. maxAddresses bounds what is remembered.
const (
	recently     = 24 * time.Hour
	maxAddresses = 10_000
)

// attempts limits how fast keys and tickets can be guessed from an address. What
// is wrong costs one of its attempts, unless it has the form of a ticket that
// Stasis makes. Once they are spent, a right answer must not tell a guess from
// others: a key is then refused before it is looked up, unless it was right from
// there of late. Keys that Stasis made, and tickets, have 130 random bits: nobody
// guesses them, so a right one always passes. Its methods are safe for concurrent use.
type attempts struct {
	now func() time.Time

	mu    sync.Mutex
	left  map[netip.Prefix]*allowance
	right map[rightKey]time.Time // when it was right last
}

// allowance is what an address has left.
type allowance struct {
	*rate.Limiter
	trying int // keys that are being looked up: each may turn out to be wrong
}

// rightKey is a key that was right from an address.
type rightKey struct {
	from netip.Prefix
	hash [32]byte
}

func newAttempts(now func() time.Time) *attempts {
	return &attempts{now: now, left: map[netip.Prefix]*allowance{}, right: map[rightKey]time.Time{}}
}

// enter refuses a key that may be a guess from an address whose attempts are spent.
// Otherwise the key may be looked up, and judged, until leave is called.
func (a *attempts) enter(from netip.Prefix, secret string) (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if access.IsNewSecret(secret) {
		return func() {}, nil
	}
	if at, ok := a.right[rightKey{from, sha256.Sum256([]byte(secret))}]; ok && a.now().Sub(at) < recently {
		return func() {}, nil
	}
	left := a.allowanceOf(from)
	if left.TokensAt(a.now())-float64(left.trying) < 1 {
		return nil, tooManyAttempts()
	}
	left.trying++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		left.trying--
	}, nil
}

// passed notes that a key is right.
func (a *attempts) passed(from netip.Prefix, secret string) {
	if access.IsNewSecret(secret) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.right[rightKey{from, sha256.Sum256([]byte(secret))}] = now
	bound(a.right, func(_ rightKey, at time.Time) bool { return now.Sub(at) >= recently })
}

// judge takes an attempt from an address if err says that a key or ticket is not
// right, and gives the error to answer with.
func (a *attempts) judge(from netip.Prefix, err error) error {
	if !fault.Is(err, fault.Unauthorized) {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.allowanceOf(from).AllowN(a.now(), 1) {
		return tooManyAttempts()
	}
	return err
}

// allowanceOf is what an address has left. The caller holds the lock.
func (a *attempts) allowanceOf(from netip.Prefix) *allowance {
	left := a.left[from]
	if left == nil {
		left = &allowance{Limiter: rate.NewLimiter(rate.Every(attemptsEvery), attemptsBurst)}
		a.left[from] = left
		now := a.now()
		bound(a.left, func(_ netip.Prefix, l *allowance) bool {
			return l.TokensAt(now) >= attemptsBurst && l.trying == 0 && l != left
		})
	}
	return left
}

// bound keeps a map within maxAddresses: it drops the entries that are spent, and
// where that is not enough, any, down to the half.
func bound[K comparable, V any](m map[K]V, spent func(K, V) bool) {
	if len(m) <= maxAddresses {
		return
	}
	for k, v := range m {
		if spent(k, v) {
			delete(m, k)
		}
	}
	for k := range m {
		if len(m) <= maxAddresses/2 {
			return
		}
		delete(m, k)
	}
}

func tooManyAttempts() error {
	return fault.New(fault.TooManyAttempts, "api.auth", "")
}
