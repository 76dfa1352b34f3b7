package session

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
)

// Purpose is what a session's ticket is for. A ticket opens the routes of its
// purpose and no others.
type Purpose string

// The purposes of tickets.
const (
	PurposeCDP  Purpose = "cdp"  // drive the browser: cdp_url and what goes with it
	PurposeView Purpose = "view" // look at it: the live view
)

// purposes is what each purpose needs of the key that a ticket stands for.
func purposes() map[Purpose]permission {
	return map[Purpose]permission{PurposeCDP: drive, PurposeView: look}
}

// macLength is how many letters of a ticket authenticate it: 130 bits, as many as
// an API key has.
const macLength = 26

// newTicketSecret makes what the tickets of one session are made with.
func newTicketSecret() []byte {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails (crypto/rand)
	return secret
}

// ticketFor makes a session's ticket for a purpose and a key: an authentication
// code (HMAC-SHA256) and the key's ID. It lives as long as both, and nothing of it
// is kept.
func (l *live) ticketFor(p Purpose, keyID string) string {
	mac := hmac.New(sha256.New, l.ticketSecret)
	_, _ = mac.Write([]byte(string(p) + " " + keyID)) // never fails (hash.Hash)
	return base32.StdEncoding.EncodeToString(mac.Sum(nil))[:macLength] + "-" + keyID
}

// IsTicket reports whether text has the form of a ticket, of a session or of
// NewTicket. Nobody can guess one: a wrong one is old, of a session that has ended,
// a daemon that has stopped or a key that was deleted.
func IsTicket(text string) bool {
	letters, _, _ := strings.Cut(text, "-") // what follows is no secret
	return isRandom(letters)
}

// ticketsFor are the tickets that a caller may have of a session.
func (l *live) ticketsFor(c Caller) map[Purpose]string {
	all := map[Purpose]string{}
	for p, needs := range purposes() {
		if c.on(l, needs) == nil {
			all[p] = l.ticketFor(p, c.KeyID)
		}
	}
	return all
}

// AuthorizeTicket returns whom a session's ticket stands for: its key, as it is
// now. A ticket for another purpose or session is unauthorized, and so is one of a
// session that has ended or a key that was deleted. Who comes with a ticket to look
// has no other right.
func (s *Service) AuthorizeTicket(ctx context.Context, ticket, sessionID string, p Purpose) (Caller, error) {
	refused := fault.New(fault.Unauthorized, "session.ticket", "the ticket is not for this, or its session has ended, or its key was deleted")
	l := s.find(sessionID)
	_, keyID, _ := strings.Cut(ticket, "-")
	if l == nil || !hmac.Equal([]byte(ticket), []byte(l.ticketFor(p, keyID))) {
		return Caller{}, refused
	}
	c, err := s.withKey(ctx, keyID)
	switch {
	case fault.Is(err, fault.Unauthorized), err == nil && c.on(l, purposes()[p]) != nil:
		return Caller{}, refused
	case err != nil:
		return Caller{}, err
	case p == PurposeView:
		c = Caller{KeyID: c.KeyID, UserID: l.userID, Rights: []Right{RightView}}
	}
	return c, nil
}

// ticketLife is how long a ticket of POST /v1/tickets can be redeemed.
const ticketLife = time.Minute

// maxTickets bounds the one-use tickets of a key that are not spent, so that no key
// can use up what others need.
const maxTickets = 1000

// tickets are the one-use tickets that are not spent. They are kept as hashes, so
// that looking one up takes no longer for a nearly right guess.
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

// NewTicket makes a ticket for one GET /v1/connect by a client that cannot
// send a header.
func (s *Service) NewTicket(_ context.Context, c Caller) (string, time.Time, error) {
	if !c.makes() {
		return "", time.Time{}, c.require(begin)
	}
	ticket := rand.Text()
	t := s.tickets
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
		return "", time.Time{}, fault.New(fault.TooManySessions, "session.ticket", "too many tickets of the key are not spent: at most %d may be", maxTickets)
	}
	expires := now.Add(ticketLife).UTC()
	t.once[sha256.Sum256([]byte(ticket))] = ticketHolder{keyID: c.KeyID, expires: expires}
	return ticket, expires, nil
}

// RedeemTicket spends a ticket of NewTicket. It stands for its key as it is now.
func (s *Service) RedeemTicket(ctx context.Context, ticket string) (Caller, error) {
	h, ok := s.tickets.spend(ticket)
	if ok {
		c, err := s.withKey(ctx, h.keyID)
		if !fault.Is(err, fault.Unauthorized) {
			return c, err
		}
	}
	return Caller{}, fault.New(fault.Unauthorized, "session.ticket", "the ticket is unknown, spent or expired, or its key was deleted")
}

func (t *tickets) spend(ticket string) (ticketHolder, bool) {
	hash := sha256.Sum256([]byte(ticket))
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.once[hash]
	delete(t.once, hash)
	return h, ok && h.expires.After(t.now())
}
