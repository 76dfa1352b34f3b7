package access

import "slices"

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

// Permission is what a use case needs of the key that calls it. Each use case
// asks for one with [Caller.Require] or, of a session, with [Caller.OnSession].
type Permission string

// The permissions.
const (
	Look       Permission = "look"       // read sessions, reports, events, lists; screenshots and the live view
	Begin      Permission = "begin"      // make a session that starts empty
	Restore    Permission = "restore"    // make a session from what was saved; resume one
	Drive      Permission = "drive"      // act in a session and save it: CDP, files, messages, pause, end, checkpoint
	Manage     Permission = "manage"     // change what is kept: snapshots, defaults, settings, extensions, documents, notes
	Secrets    Permission = "secrets"    // read archives, state, and values in diffs and events
	Administer Permission = "administer" // keys, and whatever is everybody's
)

// allows is the one table of what each right of a key allows. A key that may
// begin or restore sessions may also look at and drive those that it made
// itself; see [Caller.OnSession]. docs/security.md has the table of routes.
func allows(r Right) []Permission {
	switch r {
	case RightUse:
		return []Permission{Look, Begin, Restore, Drive, Manage}
	case RightView:
		return []Permission{Look}
	case RightCreate:
		return []Permission{Begin}
	case RightRestore:
		return []Permission{Restore}
	case RightSecrets:
		return []Permission{Secrets}
	case RightAdmin:
		return []Permission{Administer}
	}
	return nil // one of a newer Stasis
}

// right is the narrowest right that allows something, for the error message.
func (p Permission) right() Right {
	for _, r := range []Right{RightView, RightCreate, RightRestore, RightSecrets, RightAdmin} {
		if slices.Contains(allows(r), p) {
			return r
		}
	}
	return RightUse
}
