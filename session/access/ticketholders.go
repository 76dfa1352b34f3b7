package access

import (
	"context"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
)

// saveAgain is how long a ticket of [PurposeSave] stays valid after it was last used while the
// session was live. That save ends the session. A person may then have to decide about a conflict, or ask for
// an answer that a lost connection took away.
const saveAgain = time.Hour

// TicketHolders finds the caller for a ticket of a session. Its methods are safe for
// concurrent use.
type TicketHolders struct {
	keys     Callers
	sessions LiveSessions
	now      func() time.Time

	mu     sync.Mutex
	saving map[string]savingSession // by session ID
}

// savingSession is a session that was saved with a ticket, and may have ended since.
type savingSession struct {
	*LiveSession
	until time.Time
}

// NewTicketHolders makes TicketHolders. now returns the current time.
func NewTicketHolders(keys Callers, sessions LiveSessions, now func() time.Time) *TicketHolders {
	return &TicketHolders{keys: keys, sessions: sessions, now: now, saving: map[string]savingSession{}}
}

// AuthorizeTicket returns the caller for a session's ticket: the key that it, or its link,
// was made with, with the key's current rights. It returns unauthorized if the ticket is for
// another purpose or session, the session or link has ended, or the key was deleted. A ticket
// to view gives no other right.
func (t *TicketHolders) AuthorizeTicket(ctx context.Context, ticket, sessionID string, p Purpose) (Caller, error) {
	l := t.session(sessionID, p)
	if l == nil {
		return Caller{}, refusedTicket()
	}
	keyID, linkID, needs, ok := l.holder(ticket, p)
	if !ok {
		return Caller{}, refusedTicket()
	}
	c, err := t.keys.Caller(ctx, keyID)
	switch {
	case fault.Is(err, fault.Unauthorized), err == nil && l.Allow(c, needs) != nil:
		return Caller{}, refusedTicket()
	case err != nil:
		return Caller{}, err
	case p == PurposeView, p == PurposeSharedView:
		c = Caller{KeyID: c.KeyID, UserID: l.UserID, Rights: []Right{RightView}}
	case p == PurposeSave:
		if t.sessions.Rights(l.ID) == l {
			t.remember(l)
		}
	}
	c.Link = linkID
	return c, nil
}

// session returns the live session with an ID or, to save it, one that was live; nil if there
// is none.
func (t *TicketHolders) session(id string, p Purpose) *LiveSession {
	if l := t.sessions.Rights(id); l != nil || p != PurposeSave {
		return l
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if was := t.saving[id]; t.now().Before(was.until) {
		return was.LiveSession
	}
	return nil
}

// remember keeps a session that is being saved, and forgets those whose time is over.
func (t *TicketHolders) remember(l *LiveSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	for id, was := range t.saving {
		if !now.Before(was.until) {
			delete(t.saving, id)
		}
	}
	t.saving[l.ID] = savingSession{l, now.Add(saveAgain)}
}

// holder returns the key that a ticket of the session acts with, the link that it belongs to,
// and the permission that the key needs.
func (l *LiveSession) holder(ticket string, p Purpose) (keyID, linkID string, needs Permission, ok bool) {
	switch p {
	case PurposeSave:
		p = PurposeControl
	case PurposeSharedView, PurposeSharedControl:
		linkID, ok = l.tickets.holder(ticket, p)
		if !ok {
			return "", "", "", false
		}
		link, found := l.links.find(linkID)
		return link.keyID, linkID, link.needs(), found
	}
	keyID, needs, ok = l.tickets.Key(ticket, p)
	return keyID, "", needs, ok
}

func refusedTicket() error {
	return fault.New(fault.Unauthorized, "session.ticket", "the ticket is not valid for this call, its session or link has ended, or its key was deleted")
}
