package request

import (
	"reflect"
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

// CheckSame returns an error if a create that resumes a session has other options than the
// session was created with. A caller that names a proxy must not use another network
// path.
func CheckSame(keys Keys, rec profiles.Session, r Create) error {
	const op = "session.resume"
	if r.UserID != "" && r.UserID != rec.UserID {
		return fault.New(fault.UserMismatch, op, "user_id: the session to resume belongs to another user")
	}
	if !r.Options {
		return nil
	}
	was, err := FromRecord(keys, rec)
	if err != nil {
		return err
	}
	if r.Engine == "" {
		r.Engine = was.Engine
	}
	if !reflect.DeepEqual(bare(r), bare(was)) {
		return fault.New(fault.InvalidField, op, "resume: a resumed session keeps the options it was created with; leave other options out, or repeat the same")
	}
	return nil
}

// bare returns a create without what names its source and its caller, as it is after
// encoding and decoding.
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
