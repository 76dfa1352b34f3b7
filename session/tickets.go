package session

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/access"
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
func purposes() map[Purpose]access.Permission {
	return map[Purpose]access.Permission{PurposeCDP: access.Drive, PurposeView: access.Look}
}

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
	return base32.StdEncoding.EncodeToString(mac.Sum(nil))[:access.RandomLength] + "-" + keyID
}

// ticketsFor are the tickets that a caller may have of a session.
func (l *live) ticketsFor(c access.Caller) map[Purpose]string {
	all := map[Purpose]string{}
	for p, needs := range purposes() {
		if mayOn(c, l, needs) == nil {
			all[p] = l.ticketFor(p, c.KeyID)
		}
	}
	return all
}

// AuthorizeTicket returns whom a session's ticket stands for: its key, as it is
// now. A ticket for another purpose or session is unauthorized, and so is one of a
// session that has ended or a key that was deleted. Who comes with a ticket to look
// has no other right.
func (s *Service) AuthorizeTicket(ctx context.Context, ticket, sessionID string, p Purpose) (access.Caller, error) {
	refused := fault.New(fault.Unauthorized, "session.ticket", "the ticket is not for this, or its session has ended, or its key was deleted")
	l := s.find(sessionID)
	_, keyID, _ := strings.Cut(ticket, "-")
	if l == nil || !hmac.Equal([]byte(ticket), []byte(l.ticketFor(p, keyID))) {
		return access.Caller{}, refused
	}
	c, err := s.Keys.Caller(ctx, keyID)
	switch {
	case fault.Is(err, fault.Unauthorized), err == nil && mayOn(c, l, purposes()[p]) != nil:
		return access.Caller{}, refused
	case err != nil:
		return access.Caller{}, err
	case p == PurposeView:
		c = access.Caller{KeyID: c.KeyID, UserID: l.userID, Rights: []access.Right{access.RightView}}
	}
	return c, nil
}

// mayOn is [access.Caller.OnSession] of a session that lives.
func mayOn(c access.Caller, l *live, p access.Permission) error {
	return c.OnSession(l.id, l.userID, l.madeBy, p)
}
