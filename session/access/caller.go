// Package access decides who may do what: API keys and their rights, the tickets
// that stand for a key, and the connections that end with it. It keeps its records
// through a [Store] and knows nothing of sessions but their ID, user and makers.
package access

import (
	"slices"

	"github.com/stasisd/stasis/fault"
)

// Caller is who asks: the key behind a request.
type Caller struct {
	KeyID    string
	UserID   string // the user the key acts for when a call names none
	AllUsers bool   // it may act for every user
	Rights   []Right
}

// May reports whether the caller's key allows something.
func (c Caller) May(p Permission) bool {
	return slices.ContainsFunc(c.Rights, func(r Right) bool { return slices.Contains(allows(r), p) })
}

// Require is forbidden where the caller's key does not allow something.
func (c Caller) Require(p Permission) error {
	if c.May(p) {
		return nil
	}
	return fault.New(fault.Forbidden, "access.authorize", "the key lacks the right %q", p.right())
}

// Makes reports whether the caller's key may make sessions, which are then its own.
func (c Caller) Makes() bool { return c.May(Begin) || c.May(Restore) }

// ForEveryUser reports whether the caller may act for every user.
func (c Caller) ForEveryUser() bool { return c.AllUsers || c.May(Administer) }

// MayActFor reports whether the caller may act for a user. What belongs to a
// user that it may not act for does not exist for the caller.
func (c Caller) MayActFor(userID string) bool { return c.UserID == userID || c.ForEveryUser() }

// ForUser checks that the caller may do something for a user: forbidden without the
// right, user_not_found for a user that it may not act for.
func (c Caller) ForUser(userID string, p Permission) error {
	if err := c.Require(p); err != nil {
		return err
	}
	if !c.MayActFor(userID) {
		return fault.New(fault.UserNotFound, "access.user", "there is no such user")
	}
	return nil
}

// MayAsk refuses a caller whose key allows nothing of the kind for any session,
// before a session is looked up.
func (c Caller) MayAsk(p Permission) error {
	if c.May(Look) || c.Makes() {
		return nil
	}
	return c.Require(p)
}

// OnSession checks what a caller wants of a session: by its rights, or because its
// key made the session. A session that it may not even look at is session_not_found.
// by are the keys that made the session or, where it lives again, resumed it.
func (c Caller) OnSession(id, userID string, by []string, p Permission) error {
	if err := c.MayAsk(p); err != nil {
		return err
	}
	own := c.Makes() && slices.Contains(by, c.KeyID)
	switch {
	case !c.MayActFor(userID) || !own && !c.May(Look):
		return NoSession(id)
	case own:
		return nil
	}
	return c.Require(p)
}

// NoSession is session_not_found, for an ID that nobody has and for a session that
// the caller may not look at.
func NoSession(id string) error {
	return fault.New(fault.SessionNotFound, "session.find", "there is no session %s", id)
}
