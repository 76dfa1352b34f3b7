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

// An address may send attemptsBurst wrong keys or tickets, and then one more every
// attemptsEvery.
const (
	attemptsBurst      = 50
	attemptsEvery      = 6 * time.Second
	attemptsRetryAfter = "6"
)

// trustPeriod is how long a key that was right from an address is accepted from there, even if
// that address has no attempts left. maxAddresses limits the size of the maps.
const (
	trustPeriod  = 24 * time.Hour
	maxAddresses = 10_000
)

// attempts limits how fast keys and tickets can be guessed from one address. Each wrong key
// or ticket costs its address one attempt, unless it has the form of a ticket that Stasis
// makes.
//
// When no attempts are left, answers must not show whether a guess was right. A key is then
// refused before it is looked up, unless it was recently right from that address. Keys and
// tickets that Stasis makes have 130 random bits and cannot be guessed, so they are always
// looked up.
//
// Methods of attempts are safe for concurrent use.
type attempts struct {
	now func() time.Time

	mu    sync.Mutex
	left  map[netip.Prefix]*allowance
	right map[rightKey]time.Time // when it was last right
}

// allowance counts the attempts that an address has left.
type allowance struct {
	*rate.Limiter
	trying int // keys that are being looked up; each may turn out to be wrong
}

// rightKey is a key that was right from an address.
type rightKey struct {
	from netip.Prefix
	hash [32]byte
}

func newAttempts(now func() time.Time) *attempts {
	return &attempts{now: now, left: map[netip.Prefix]*allowance{}, right: map[rightKey]time.Time{}}
}

// begin refuses a key that may be a guess if its address has no attempts left. Otherwise
// the caller may look the key up and count a failure, and then calls leave.
func (a *attempts) begin(from netip.Prefix, secret string) (leave func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if access.IsNewSecret(secret) {
		return func() {}, nil
	}
	if at, ok := a.right[rightKey{from, sha256.Sum256([]byte(secret))}]; ok && a.now().Sub(at) < trustPeriod {
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

// recordSuccess records that a key was right.
func (a *attempts) recordSuccess(from netip.Prefix, secret string) {
	if access.IsNewSecret(secret) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	a.right[rightKey{from, sha256.Sum256([]byte(secret))}] = now
	limitSize(a.right, func(_ rightKey, at time.Time) bool { return now.Sub(at) >= trustPeriod })
}

// countFailure takes one attempt from an address if err says that a key or ticket is wrong. It
// returns the error to answer with.
func (a *attempts) countFailure(from netip.Prefix, err error) error {
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

// allowanceOf returns the attempts that an address has left. The caller holds the lock.
func (a *attempts) allowanceOf(from netip.Prefix) *allowance {
	left := a.left[from]
	if left == nil {
		left = &allowance{Limiter: rate.NewLimiter(rate.Every(attemptsEvery), attemptsBurst)}
		a.left[from] = left
		now := a.now()
		limitSize(a.left, func(_ netip.Prefix, l *allowance) bool {
			return l.TokensAt(now) >= attemptsBurst && l.trying == 0 && l != left
		})
	}
	return left
}

// limitSize limits a map to maxAddresses entries. It first deletes the entries that are spent.
// If that is not enough, it deletes arbitrary ones until half of maxAddresses is left.
func limitSize[K comparable, V any](m map[K]V, spent func(K, V) bool) {
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
