package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
)

// ticketLife is how long a ticket of POST /v1/tickets is valid.
const ticketLife = time.Minute

// maxTickets bounds the unspent one-use tickets of a key, so that one key cannot fill the
// memory.
const maxTickets = 1000

// tickets holds the unspent one-use tickets. They are stored as hashes, so that the time
// of a lookup does not reveal a nearly right guess.
type tickets struct {
	now func() time.Time

	mu   sync.Mutex
	once map[[32]byte]ticketHolder
}

type ticketHolder struct {
	keyID   string
	expires time.Time
}

func newTickets(now func() time.Time) *tickets {
	return &tickets{now: now, once: map[[32]byte]ticketHolder{}}
}

// NewTicket makes a ticket for one GET /v1/connect, for a client that cannot send a
// header. It also returns when the ticket expires.
func (k *Keys) NewTicket(ctx context.Context, c Caller) (string, time.Time, error) {
	if !c.MayCreate() {
		return "", time.Time{}, c.Require(Begin)
	}
	ticket := rand.Text()
	t := k.tickets
	if k.shared != nil {
		now := t.now()
		expires := now.Add(ticketLife).UTC()
		added, err := k.shared.AddTicket(ctx, sha256.Sum256([]byte(ticket)), c.KeyID, expires, now, maxTickets)
		if err == nil && !added {
			err = tooManyTickets()
		}
		if err != nil {
			return "", time.Time{}, err
		}
		return ticket, expires, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now, own := t.now(), 0
	for hash, h := range t.once {
		switch {
		case !h.expires.After(now):
			delete(t.once, hash)
		case h.keyID == c.KeyID:
			own++
		}
	}
	if own >= maxTickets {
		return "", time.Time{}, tooManyTickets()
	}
	expires := now.Add(ticketLife).UTC()
	t.once[sha256.Sum256([]byte(ticket))] = ticketHolder{keyID: c.KeyID, expires: expires}
	return ticket, expires, nil
}

func tooManyTickets() error {
	return fault.New(fault.TooManySessions, "access.ticket", "the key has %d unused tickets, which is the limit; use one, or wait: a ticket expires after a minute", maxTickets)
}

// RedeemTicket spends a ticket of NewTicket and returns its caller, with the key's
// current rights.
func (k *Keys) RedeemTicket(ctx context.Context, ticket string) (Caller, error) {
	keyID, err := k.spend(ctx, ticket)
	if err != nil {
		return Caller{}, err
	}
	if keyID != "" {
		c, err := k.Caller(ctx, keyID)
		if !fault.Is(err, fault.Unauthorized) {
			return c, err
		}
	}
	return Caller{}, fault.New(fault.Unauthorized, "access.ticket", "the ticket is unknown, spent or expired, or its key was deleted")
}

// spend returns the key of a valid ticket, which is spent then; "" if it is not valid.
func (k *Keys) spend(ctx context.Context, ticket string) (keyID string, err error) {
	if k.shared != nil {
		return k.shared.SpendTicket(ctx, sha256.Sum256([]byte(ticket)), k.now())
	}
	if h, ok := k.tickets.spend(ticket); ok {
		return h.keyID, nil
	}
	return "", nil
}

func (t *tickets) spend(ticket string) (ticketHolder, bool) {
	hash := sha256.Sum256([]byte(ticket))
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.once[hash]
	delete(t.once, hash)
	return h, ok && h.expires.After(t.now())
}

// IsTicket reports whether text has the form of a ticket, of a session or of
// [Keys.NewTicket]. Tickets cannot be guessed. An invalid one therefore comes from an
// ended session, a stopped daemon or a deleted key.
func IsTicket(text string) bool {
	letters, _, _ := strings.Cut(text, "-") // the rest is not secret
	return IsRandom(letters)
}
