package session

import (
	"encoding/json"

	"github.com/stasisd/stasis/profiles"
)

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

// HookSession is a session as webhooks get it: as on the wire, without what lets
// anybody connect and what agents noted.
func HookSession(rec profiles.Session) json.RawMessage {
	answer := Info{Session: rec, HasAgent: rec.WebhookURL != ""}.Answer()
	if answer.Restored != nil {
		answer.Restored.Notes = nil // Answer has made it a copy
	}
	return profiles.JSON(answer)
}
