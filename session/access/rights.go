package access

import "slices"

// Right is something that a key allows.
type Right string

// The rights of a key; [allows] is the table of what each allows.
const (
	RightUse     Right = "use"     // all that a program needs: view, create, restore, and change stored data
	RightView    Right = "view"    // look at sessions and stored data; drive nothing
	RightCreate  Right = "create"  // create sessions that start empty, and drive those
	RightRestore Right = "restore" // create sessions from saved environments, and drive those
	RightSecrets Right = "secrets" // read archives, state and values of snapshots
	RightAdmin   Right = "admin"   // manage keys; act for every user
)

// Rights returns all rights that a key can be given.
func Rights() []Right {
	return []Right{RightUse, RightView, RightCreate, RightRestore, RightSecrets, RightAdmin}
}

// Permission is what a use case requires of the caller's key. A use case checks one
// permission with [Caller.Require] or, for a session, with [Caller.OnSession].
type Permission string

// The permissions.
const (
	Look       Permission = "look"       // read sessions, reports, events, lists; screenshots and the live view
	Begin      Permission = "begin"      // create a session that starts empty
	Restore    Permission = "restore"    // create a session from a saved environment; resume a session
	Drive      Permission = "drive"      // act in a session and save it: CDP, files, messages, pause, end, checkpoint
	Manage     Permission = "manage"     // change stored data: snapshots, defaults, settings, extensions, documents, notes
	Secrets    Permission = "secrets"    // read archives, state, and values in diffs and events
	Administer Permission = "administer" // manage keys, and what is shared by all users
)

// allows is the one table of the permissions that each right gives. A key that may begin
// or restore sessions may also look at and drive those that it made; see
// [Caller.OnSession]. docs/security.md has the table of routes.
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
	return nil // a right of a newer Stasis
}

// right returns the narrowest right that gives the permission, for error messages.
func (p Permission) right() Right {
	for _, r := range []Right{RightView, RightCreate, RightRestore, RightSecrets, RightAdmin} {
		if slices.Contains(allows(r), p) {
			return r
		}
	}
	return RightUse
}
