package session

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/state"
)

// unsaved is what a live session has and its datadir lacks. It is kept sealed
// with the session's record while it lives, for a rescue after the daemon's
// death: without its proxy a restored session would go out in the open.
type unsaved struct {
	Overrides state.Overrides `json:"overrides"`
	Partial   bool            `json:"partial"`            // it has only some origins
	Origins   state.Selection `json:"origins,omitzero"`   // those that it was given
	Passkeys  *bool           `json:"passkeys,omitempty"` // as the create asked
	Laid      time.Time       `json:"laid,omitzero"`      // when the snapshot that it began with was in place
}

// sealUnsaved seals what a session has; nil where that is nothing.
func (s *Service) sealUnsaved(u unsaved) ([]byte, error) {
	if reflect.ValueOf(u).IsZero() {
		return nil, nil
	}
	return s.Vault.Seal(encode(u))
}

// unsaved gives a rescue what the dead daemon kept for it. Where that cannot
// be opened, the datadir is worth saving all the same, and the snapshot says
// what it lacks.
func (s *Service) unsaved(j job) job {
	if len(j.rec.Sealed) == 0 {
		return j
	}
	var kept unsaved
	raw, err := s.Vault.Unseal(j.rec.Sealed)
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	if err != nil {
		s.Log.Error("what a rescued session had been given could not be read", "session", j.rec.ID, "error", err)
		j.missed = []state.Missed{{Component: state.ComponentOverrides,
			Reason: "if the session had some, such as a proxy, they could not be read: " + fault.MessageOf(err)}}
		return j
	}
	j.again.Overrides, j.partial = kept.Overrides, kept.Partial
	j.again.Passkeys, j.given, j.laid = kept.Passkeys, kept.Origins, kept.Laid
	return j
}
