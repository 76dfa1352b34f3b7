package session

import (
	"slices"

	"github.com/stasisd/stasis/fault"
)

// Right is something that a key allows.
type Right string

// The rights of a key; [allows] is the table of what each allows.
const (
	RightUse     Right = "use"     // all that a program needs: view, create and restore, and whatever changes what is kept
	RightView    Right = "view"    // look at sessions and what is kept, and drive nothing
	RightCreate  Right = "create"  // make sessions that start empty, and drive those
	RightRestore Right = "restore" // make sessions from what was saved, and drive those
	RightSecrets Right = "secrets" // read archives, state and values out of snapshots
	RightAdmin   Right = "admin"   // keys, every user
)

// Rights are all rights of a key, as they are offered to who makes one.
func Rights() []Right {
	return []Right{RightUse, RightView, RightCreate, RightRestore, RightSecrets, RightAdmin}
}

// permission is what a use case needs of the key that calls it. Each use case
// asks for one with [Caller.require] or, of a session, with [Caller.onSession].
type permission string

const (
	look       permission = "look"       // read sessions, reports, events, lists; screenshots and the live view
	begin      permission = "begin"      // make a session that starts empty
	restore    permission = "restore"    // make a session from what was saved; resume one
	drive      permission = "drive"      // act in a session and save it: CDP, files, messages, pause, end, checkpoint
	manage     permission = "manage"     // change what is kept: snapshots, defaults, settings, extensions, documents, notes
	secrets    permission = "secrets"    // read archives, state, and values in diffs and events
	administer permission = "administer" // keys, and whatever is everybody's
)

// allows is the one table of what each right of a key allows. A key that may
// begin or restore sessions may also look at and drive those that it made
// itself; see [Caller.onSession]. docs/security.md has the table of routes.
func allows(r Right) []permission {
	switch r {
	case RightUse:
		return []permission{look, begin, restore, drive, manage}
	case RightView:
		return []permission{look}
	case RightCreate:
		return []permission{begin}
	case RightRestore:
		return []permission{restore}
	case RightSecrets:
		return []permission{secrets}
	case RightAdmin:
		return []permission{administer}
	}
	return nil // one of a newer Stasis
}

// may reports whether the caller's key allows something.
func (c Caller) may(p permission) bool {
	return slices.ContainsFunc(c.Rights, func(r Right) bool { return slices.Contains(allows(r), p) })
}

// require is forbidden where the caller's key does not allow something.
func (c Caller) require(p permission) error {
	if c.may(p) {
		return nil
	}
	return fault.New(fault.Forbidden, "session.authorize", "the key lacks the right %q", p.right())
}

// right is the narrowest right that allows something, for the error message.
func (p permission) right() Right {
	for _, r := range []Right{RightView, RightCreate, RightRestore, RightSecrets, RightAdmin} {
		if slices.Contains(allows(r), p) {
			return r
		}
	}
	return RightUse
}

// makes reports whether the caller's key may make sessions, which are then its own.
func (c Caller) makes() bool { return c.may(begin) || c.may(restore) }

// everybodys reports whether the caller may act for every user.
func (c Caller) everybodys() bool { return c.AllUsers || c.may(administer) }

// mayActFor reports whether the caller may act for a user. What belongs to a
// user that it may not act for does not exist for the caller.
func (c Caller) mayActFor(userID string) bool { return c.UserID == userID || c.everybodys() }

// mayAsk refuses a caller whose key allows nothing of the kind for any session,
// before a session is looked up.
func (c Caller) mayAsk(p permission) error {
	if c.may(look) || c.makes() {
		return nil
	}
	return c.require(p)
}

// onSession checks what a caller wants of a session, look or drive: by its rights,
// or because its key made the session. One that it may not even look at does not
// exist for it. by is the key that made it or, where it lives again, resumed it.
func (c Caller) onSession(id, userID string, by []string, p permission) error {
	if err := c.mayAsk(p); err != nil {
		return err
	}
	own := c.makes() && slices.Contains(by, c.KeyID)
	switch {
	case !c.mayActFor(userID) || !own && !c.may(look):
		return noSuchSession(id)
	case own:
		return nil
	}
	return c.require(p)
}

// on is [Caller.onSession] of a session that lives.
func (c Caller) on(l *live, p permission) error { return c.onSession(l.id, l.userID, l.madeBy, p) }
