package access

import (
	"context"

	"github.com/stasisd/stasis/fault"
)

// LiveSession is a live session as far as it is decided who may do what with it. It does
// not change once others have it.
type LiveSession struct {
	ID, UserID string
	// MadeBy is the key that made the session and, where it lives again, the one that
	// resumed it.
	MadeBy  []string
	tickets SessionTickets // they die with the session
}

// NewLiveSession makes a LiveSession, with tickets of its own, of the user and the key
// that made it.
func NewLiveSession(id, userID, keyID string) *LiveSession {
	return &LiveSession{ID: id, UserID: userID, MadeBy: []string{keyID}, tickets: NewSessionTickets()}
}

// Allow is [Caller.OnSession] of the session.
func (l *LiveSession) Allow(c Caller, p Permission) error {
	return c.OnSession(l.ID, l.UserID, l.MadeBy, p)
}

// Tickets are the tickets that a caller may have of the session.
func (l *LiveSession) Tickets(c Caller) map[Purpose]string {
	return l.tickets.MakeAll(c.KeyID, func(p Permission) error { return l.Allow(c, p) })
}

// Callers finds whom keys stand for; see [Keys.Caller].
type Callers interface {
	// Caller is who calls with a key as it is now; unauthorized where it was deleted.
	Caller(ctx context.Context, id string) (Caller, error)
}

// LiveSessions finds live sessions.
type LiveSessions interface {
	// Rights is the live session of an ID; nil where there is none.
	Rights(id string) *LiveSession
}

// TicketHolders finds whom the tickets of live sessions stand for. Its methods are safe
// for concurrent use.
type TicketHolders struct {
	keys     Callers
	sessions LiveSessions
}

// NewTicketHolders makes TicketHolders of some keys and sessions.
func NewTicketHolders(keys Callers, sessions LiveSessions) *TicketHolders {
	return &TicketHolders{keys, sessions}
}

// AuthorizeTicket returns whom a session's ticket stands for: its key, as it is
// now. A ticket for another purpose or session is unauthorized, and so is one of a
// session that has ended or a key that was deleted. Who comes with a ticket to look
// has no other right.
func (t *TicketHolders) AuthorizeTicket(ctx context.Context, ticket, sessionID string, p Purpose) (Caller, error) {
	refused := fault.New(fault.Unauthorized, "session.ticket", "the ticket is not for this, or its session has ended, or its key was deleted")
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
