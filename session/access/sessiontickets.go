package access

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// Purpose is what a session's ticket is for. A ticket opens the routes of its
// purpose and no others.
type Purpose string

// The purposes of tickets.
const (
	PurposeCDP  Purpose = "cdp"  // drive the browser: cdp_url and what goes with it
	PurposeView Purpose = "view" // look at it: the live view
	// PurposeControl is to look at it and to give it input: the live view with control.
	PurposeControl Purpose = "control"
	// PurposeSharedView and PurposeSharedControl are the same for the tickets of shared
	// links; see [Link].
	PurposeSharedView    Purpose = "shared_view"
	PurposeSharedControl Purpose = "shared_control"
	// PurposeSave is to save the session as the default. Its ticket is that of
	// PurposeControl. Once it has been used, it stays valid for [saveAgain], also after the
	// session has ended.
	PurposeSave Purpose = "save"
)

// purposes maps the purpose of each ticket of a key to the permission that the key needs.
func purposes() map[Purpose]Permission {
	return map[Purpose]Permission{PurposeCDP: Drive, PurposeView: Look, PurposeControl: Drive}
}

// SessionTickets makes and recognises the tickets of one live session. Tickets are not
// stored: they are valid as long as the session lives and the key exists. Its methods are
// safe for concurrent use.
type SessionTickets struct{ secret []byte }

// NewSessionTickets makes SessionTickets with a new random secret.
func NewSessionTickets() SessionTickets {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails (crypto/rand)
	return SessionTickets{secret: secret}
}

// DeriveSessionTickets makes SessionTickets whose secret is derived from a key that nodes share
// and a salt in the session's record. So a session that continues on another node has the same
// tickets.
func DeriveSessionTickets(key []byte, sessionID, salt string) SessionTickets {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte("tickets " + sessionID + " " + salt)) // never fails (hash.Hash)
	return SessionTickets{secret: mac.Sum(nil)}
}

// Make makes the ticket for a purpose and a key, or for a shared link. It consists of an
// authentication code (HMAC-SHA256) and the ID of the key or link.
func (t SessionTickets) Make(p Purpose, id string) string {
	mac := hmac.New(sha256.New, t.secret)
	_, _ = mac.Write([]byte(string(p) + " " + id)) // never fails (hash.Hash)
	return base32.StdEncoding.EncodeToString(mac.Sum(nil))[:RandomLength] + "-" + id
}

// holder returns the ID of the key or link that a ticket was made for. ok is false if the
// ticket belongs to another session or purpose.
func (t SessionTickets) holder(ticket string, p Purpose) (id string, ok bool) {
	_, id, _ = strings.Cut(ticket, "-")
	return id, hmac.Equal([]byte(ticket), []byte(t.Make(p, id)))
}

// MakeAll makes a key's tickets for every purpose that may allows. may returns an error
// to refuse a permission.
func (t SessionTickets) MakeAll(keyID string, may func(Permission) error) map[Purpose]string {
	all := map[Purpose]string{}
	for p, needs := range purposes() {
		if may(needs) == nil {
			all[p] = t.Make(p, keyID)
		}
	}
	return all
}

// Key returns the ID of the key that a ticket was made with, and the permission that the
// purpose needs. ok is false if the ticket belongs to another session or purpose.
func (t SessionTickets) Key(ticket string, p Purpose) (keyID string, needs Permission, ok bool) {
	keyID, ok = t.holder(ticket, p)
	return keyID, purposes()[p], ok
}
