package session

import "github.com/stasisd/stasis/profiles"

// Notices make what webhooks are sent of a session; see [events.Notices].
type Notices interface {
	// Of are the notices of events for a session as it is now. It may run inside a
	// transaction.
	Of(rec profiles.Session, events ...string) []profiles.Notice
	// For is Of for a record that a transaction makes.
	For(events ...string) func(profiles.Session) []profiles.Notice
	// Wake has what was written sent.
	Wake()
}
