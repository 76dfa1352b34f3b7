package request

import (
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// usualIdle and usualLifetime are the limits of sessions whose record does not say what
// they were created with.
const (
	usualIdle     = 15 * time.Minute
	usualLifetime = 6 * time.Hour
)

// Keys seals and unseals the options in a record; see [snapshot.Vault].
type Keys interface {
	Seal(plain []byte) ([]byte, error)
	Unseal(sealed []byte) ([]byte, error)
}

// Seal encodes and seals the options of a create for the session's record.
func Seal(keys Keys, r Create) ([]byte, error) { return keys.Seal(Encode(r)) }

// FromRecord returns the options with which an ended session was created, changed to start
// from the session's own snapshot. A session of an older Stasis, or an imported one, has
// the usual limits.
func FromRecord(keys Keys, rec profiles.Session) (Create, error) {
	r := Create{AgentName: rec.AgentName, Goal: rec.Goal, AllowMemory: true, RestoreTabs: true,
		Idle: usualIdle, Lifetime: usualLifetime, Labels: rec.Labels, DiscardOnEnd: rec.Discard}
	if len(rec.SealedRequest) > 0 {
		raw, err := keys.Unseal(rec.SealedRequest)
		if err == nil {
			r, err = Decode(raw)
		}
		if err != nil {
			// Without the recorded proxy, the session would use the host's own network.
			return r, fault.Wrap(err, fault.CodeOf(err), "session.resume",
				"cannot read the options that the session was created with; create a session with restore_from_session_id instead: "+fault.MessageOf(err))
		}
	}
	r.SessionID, r.UserID, r.Engine, r.RequestHash = rec.ID, rec.UserID, rec.Engine, rec.RequestHash
	r.FromSession, r.FromEnvironment, r.FromDefaultOf, r.StartURL = rec.ID, "", "", ""
	return r, nil
}
