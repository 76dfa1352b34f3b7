package access

import (
	"context"
	"time"
)

// LiveSession holds what access checks need of a live session. Only its links change after
// it is shared, and they have their own lock.
type LiveSession struct {
	ID, UserID string
	// MadeBy are the keys that created the session and, after a resume, resumed it.
	MadeBy  []string
	tickets SessionTickets // they end with the session
	links   *links         // the same
}

// NewLiveSession makes a LiveSession with its own tickets. userID is the session's user,
// keyID the key that created it. now returns the current time.
func NewLiveSession(id, userID, keyID string, now func() time.Time) *LiveSession {
	return &LiveSession{ID: id, UserID: userID, MadeBy: []string{keyID}, tickets: NewSessionTickets(), links: newLinks(now)}
}

// UseTickets gives the session other tickets. It is called before the session is shared.
func (l *LiveSession) UseTickets(t SessionTickets) { l.tickets = t }

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
