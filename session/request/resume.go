package request

import (
	"reflect"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// usualIdle and usualLifetime are the limits of sessions of which it is not
// recorded what they were created with.
const (
	usualIdle     = 15 * time.Minute
	usualLifetime = 6 * time.Hour
)

// Keys seals what a record keeps of a create, and opens it; see [snapshot.Vault].
type Keys interface {
	Seal(plain []byte) ([]byte, error)
	Unseal(sealed []byte) ([]byte, error)
}

// Seal seals what a session was made with, as its record keeps it.
func Seal(keys Keys, r Create) ([]byte, error) { return keys.Seal(Encode(r)) }

// Recorded is what an ended session was made with, to be made again from its own
// snapshot. One of an older Stasis, or an imported one, has the usual limits.
func Recorded(keys Keys, rec profiles.Session) (Create, error) {
	r := Create{AgentName: rec.AgentName, Goal: rec.Goal, AllowMemory: true, RestoreTabs: true,
		Idle: usualIdle, Lifetime: usualLifetime, Labels: rec.Labels, DiscardOnEnd: rec.Discard}
	if len(rec.Asked) > 0 {
		raw, err := keys.Unseal(rec.Asked)
		if err == nil {
			r, err = Decode(raw)
		}
		if err != nil {
			// Without its proxy it would go out in the open.
			return r, fault.Wrap(err, fault.CodeOf(err), "session.resume",
				"what the session was created with cannot be read; create one with restore_from_session_id instead: "+fault.MessageOf(err))
		}
	}
	r.SessionID, r.UserID, r.Engine, r.RequestHash = rec.ID, rec.UserID, rec.Engine, rec.RequestHash
	r.FromSession, r.FromEnvironment, r.FromDefaultOf, r.StartURL = rec.ID, "", "", ""
	return r, nil
}

// Same refuses a create that resumes a session and asks for something else than that
// was made with: who names a proxy must not go out by another way.
func Same(keys Keys, rec profiles.Session, r Create) error {
	const op = "session.resume"
	if r.UserID != "" && r.UserID != rec.UserID {
		return fault.New(fault.UserMismatch, op, "user_id is not the user of the session to resume")
	}
	if !r.Options {
		return nil
	}
	was, err := Recorded(keys, rec)
	if err != nil {
		return err
	}
	if r.Engine == "" {
		r.Engine = was.Engine
	}
	if !reflect.DeepEqual(bare(r), bare(was)) {
		return fault.New(fault.InvalidField, op, "resume: the session goes on with what it was created with; leave the other options out, or give the same")
	}
	return nil
}

// bare is a create without what says where it starts and who asks, as it
// is after it was recorded.
func bare(r Create) Create {
	r.SessionID, r.UserID, r.RequestHash, r.StartURL, r.Wait = "", "", "", "", 0
	r.FromSession, r.FromEnvironment, r.FromDefaultOf = "", "", ""
	r.FreshIfNone, r.Resume, r.Options = false, false, false
	if r.OnLive == OnLiveShare {
		r.OnLive = OnLiveFail
	}
	same, err := Decode(Encode(r))
	if err != nil {
		return r
	}
	return same
}
