// Package access decides who may do what. It holds API keys and their rights, the tickets
// made with a key, and the connections that close when the key is deleted. It stores its
// records through a [Store]. Of a session it knows only the ID, the user and the keys
// that made it.
package access

import (
	"slices"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/session/quota"
)

// Caller is the key behind a request.
type Caller struct {
	KeyID    string
	UserID   string // the user the key acts for when a call names no user
	AllUsers bool   // the key may act for every user
	Rights   []Right
	Quotas   quota.Quotas // of the key
	// Link is the ID of the shared link that the request came through; "": none. Only the
	// routes of the live view let it in.
	Link string
}

// May reports whether the caller's key has a permission.
func (c Caller) May(p Permission) bool {
	return slices.ContainsFunc(c.Rights, func(r Right) bool { return slices.Contains(allows(r), p) })
}

// Require returns forbidden if the caller's key lacks a permission.
func (c Caller) Require(p Permission) error {
	if c.May(p) {
		return nil
	}
	return fault.New(fault.Forbidden, "access.authorize", "the key lacks the right %q", p.right())
}

// MayCreate reports whether the caller's key may create sessions. The key may then also
// drive the sessions that it created.
func (c Caller) MayCreate() bool { return c.May(Begin) || c.May(Restore) }

// ForEveryUser reports whether the caller may act for every user.
func (c Caller) ForEveryUser() bool { return c.AllUsers || c.May(Administer) }

// MayActFor reports whether the caller may act for a user. For a caller that may not,
// everything of that user does not exist.
func (c Caller) MayActFor(userID string) bool { return c.UserID == userID || c.ForEveryUser() }

// ForUser checks that the caller has a permission and may act for a user. It returns
// forbidden if the permission is missing, and user_not_found if the caller may not act
// for the user.
func (c Caller) ForUser(userID string, p Permission) error {
	if err := c.Require(p); err != nil {
		return err
	}
	if !c.MayActFor(userID) {
		return fault.New(fault.UserNotFound, "access.user", "there is no such user")
	}
	return nil
}

// RequireForAny refuses a caller whose key has the permission for no session at all. It is
// called before a session is looked up.
func (c Caller) RequireForAny(p Permission) error {
	if c.May(Look) || c.MayCreate() {
		return nil
	}
	return c.Require(p)
}

// OnSession checks that a caller has a permission for a session, by its rights or because
// its key made the session. It returns session_not_found if the caller may not even look
// at the session. by are the keys that created the session and, after a resume, resumed
// it.
func (c Caller) OnSession(id, userID string, by []string, p Permission) error {
	if err := c.RequireForAny(p); err != nil {
		return err
	}
	own := c.MayCreate() && slices.Contains(by, c.KeyID)
	switch {
	case !c.MayActFor(userID) || !own && !c.May(Look):
		return NoSession(id)
	case own:
		return nil
	}
	return c.Require(p)
}

// NoSession returns session_not_found, for an unknown ID and for a session that the
// caller may not look at.
func NoSession(id string) error {
	return fault.New(fault.SessionNotFound, "session.find", "there is no session %q for this key", id)
}
