package session

import "github.com/stasisd/stasis/profiles"

// Notices makes the deliveries of webhooks; see [events.Notices].
type Notices interface {
	// Of returns the notices of events for a session as rec describes it. It may run
	// inside a transaction.
	Of(rec profiles.Session, events ...string) []profiles.Notice
	// For is like Of for a record that a transaction makes.
	For(events ...string) func(profiles.Session) []profiles.Notice
	// Wake starts sending the recorded notices.
	Wake()
}
