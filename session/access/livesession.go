package access

import (
	"context"

	"github.com/stasisd/stasis/fault"
)

// LiveSession holds what access checks need of a live session. It does not change after
// it is shared.
type LiveSession struct {
	ID, UserID string
	// MadeBy are the keys that created the session and, after a resume, resumed it.
	MadeBy  []string
	tickets SessionTickets // they end with the session
}

// NewLiveSession makes a LiveSession with its own tickets. userID is the session's user,
// keyID the key that created it.
func NewLiveSession(id, userID, keyID string) *LiveSession {
	return &LiveSession{ID: id, UserID: userID, MadeBy: []string{keyID}, tickets: NewSessionTickets()}
}

// Allow checks that the caller has a permission for the session; see [Caller.OnSession].
func (l *LiveSession) Allow(c Caller, p Permission) error {
	return c.OnSession(l.ID, l.UserID, l.MadeBy, p)
}

// Tickets returns the tickets of the session that the caller may have, by purpose.
func (l *LiveSession) Tickets(c Caller) map[Purpose]string {
	return l.tickets.MakeAll(c.KeyID, func(p Permission) error { return l.Allow(c, p) })
}

// Callers finds the caller for a key; see [Keys.Caller].
type Callers interface {
	// Caller returns the caller for a key ID, with the key's current rights; unauthorized
	// if the key was deleted.
	Caller(ctx context.Context, id string) (Caller, error)
}

// LiveSessions finds live sessions.
type LiveSessions interface {
	// Rights returns the live session with an ID, or nil.
	Rights(id string) *LiveSession
}

// TicketHolders finds the caller for a ticket of a live session. Its methods are safe for
// concurrent use.
type TicketHolders struct {
	keys     Callers
	sessions LiveSessions
}

// NewTicketHolders makes TicketHolders.
func NewTicketHolders(keys Callers, sessions LiveSessions) *TicketHolders {
	return &TicketHolders{keys, sessions}
}

// AuthorizeTicket returns the caller for a session's ticket: the key it was made with,
// with the key's current rights. It returns unauthorized if the ticket is for another
// purpose or session, the session has ended, or the key was deleted. A ticket to view
// gives no other right.
func (t *TicketHolders) AuthorizeTicket(ctx context.Context, ticket, sessionID string, p Purpose) (Caller, error) {
	refused := fault.New(fault.Unauthorized, "session.ticket", "the ticket is not valid for this call, its session has ended, or its key was deleted")
	l := t.sessions.Rights(sessionID)
	if l == nil {
		return Caller{}, refused
	}
	keyID, needs, ok := l.tickets.Key(ticket, p)
	if !ok {
		return Caller{}, refused
	}
	c, err := t.keys.Caller(ctx, keyID)
	switch {
	case fault.Is(err, fault.Unauthorized), err == nil && l.Allow(c, needs) != nil:
		return Caller{}, refused
	case err != nil:
		return Caller{}, err
	case p == PurposeView:
		c = Caller{KeyID: c.KeyID, UserID: l.UserID, Rights: []Right{RightView}}
	}
	return c, nil
}
