package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
)

// ticketLife is how long a ticket of POST /v1/tickets can be redeemed.
const ticketLife = time.Minute

// tickets lets somebody in without a key: a session's ticket for as long as
// the session lives, a one-shot ticket once and for a minute. They are kept
// as hashes, so that looking one up takes no longer for a nearly right guess.
type tickets struct {
	now func() time.Time

	mu       sync.Mutex
	sessions map[[32]byte]ticketHolder
	once     map[[32]byte]ticketHolder
}

type ticketHolder struct {
	caller  Caller
	session string
	expires time.Time
}

func newTickets(now func() time.Time) *tickets {
	return &tickets{now: now, sessions: map[[32]byte]ticketHolder{}, once: map[[32]byte]ticketHolder{}}
}

// forSession makes the ticket of a session.
func (t *tickets) forSession(id string, c Caller) string {
	ticket := rand.Text()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions[sha256.Sum256([]byte(ticket))] = ticketHolder{caller: c, session: id}
	return ticket
}

// end forgets a session's ticket.
func (t *tickets) end(ticket string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sessions, sha256.Sum256([]byte(ticket)))
}

// AuthorizeTicket returns whom a cdp_url's ticket stands for. A ticket of
// another session, or of one that has ended, is unauthorized.
func (s *Service) AuthorizeTicket(_ context.Context, ticket, sessionID string) (Caller, error) {
	s.tickets.mu.Lock()
	defer s.tickets.mu.Unlock()
	h, ok := s.tickets.sessions[sha256.Sum256([]byte(ticket))]
	if !ok || h.session != sessionID {
		return Caller{}, fault.New(fault.Unauthorized, "session.ticket", "the ticket is not for this session, or the session has ended")
	}
	return h.caller, nil
}

// NewTicket makes a ticket for one GET /v1/connect by a client that cannot
// send a header.
func (s *Service) NewTicket(_ context.Context, c Caller) (string, time.Time, error) {
	if err := c.require(rightUse); err != nil {
		return "", time.Time{}, err
	}
	ticket := rand.Text()
	t := s.tickets
	t.mu.Lock()
	defer t.mu.Unlock()
	for hash, h := range t.once {
		if !h.expires.After(t.now()) {
			delete(t.once, hash)
		}
	}
	expires := t.now().Add(ticketLife).UTC()
	t.once[sha256.Sum256([]byte(ticket))] = ticketHolder{caller: c, expires: expires}
	return ticket, expires, nil
}

// RedeemTicket spends a ticket of NewTicket.
func (s *Service) RedeemTicket(_ context.Context, ticket string) (Caller, error) {
	t := s.tickets
	t.mu.Lock()
	defer t.mu.Unlock()
	hash := sha256.Sum256([]byte(ticket))
	h, ok := t.once[hash]
	delete(t.once, hash)
	if !ok || !h.expires.After(t.now()) {
		return Caller{}, fault.New(fault.Unauthorized, "session.ticket", "the ticket is unknown, spent or expired")
	}
	return h.caller, nil
}
