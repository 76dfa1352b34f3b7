package rescue

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/save"
	"github.com/stasisd/stasis/state"
)

// SealedState is what a live session has and its profile lacks. It is stored sealed in the
// session's record while the session lives, for a rescue after the daemon died: without
// its proxy, a restored session would connect directly.
type SealedState struct {
	Overrides  state.Overrides `json:"overrides"`
	Partial    bool            `json:"partial"`            // it has only some origins
	Origins    state.Selection `json:"origins,omitzero"`   // the selection; zero: all
	Passkeys   *bool           `json:"passkeys,omitempty"` // as in the create
	RestoredAt time.Time       `json:"laid,omitzero"`      // when the snapshot that the session started from had been applied
}

// Seal encodes and seals s for the session's record; nil for the zero value.
func (s SealedState) Seal(keys interface {
	Seal(plain []byte) ([]byte, error)
}) ([]byte, error) {
	if reflect.ValueOf(s).IsZero() {
		return nil, nil
	}
	return keys.Seal(profiles.JSON(s))
}

// restoreSealed adds to a rescue what the dead daemon stored for it. If that cannot be
// read, the profile is saved all the same, and the snapshot reports what it lacks.
func (r *Rescues) restoreSealed(j save.Job) save.Job {
	if len(j.Session.Sealed) == 0 {
		return j
	}
	var kept SealedState
	raw, err := r.cfg.Archives.Unseal(j.Session.Sealed)
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	if err != nil {
		r.cfg.Log.Error("the stored overrides of a rescued session could not be read; its snapshot has none", "session", j.Session.ID, "error", err)
		j.Missed = []state.Missed{{Component: state.ComponentOverrides,
			Reason: "the session's overrides, such as a proxy, could not be read; if it had any, they are lost: " + fault.MessageOf(err)}}
		return j
	}
	j.Options.Overrides, j.Partial = kept.Overrides, kept.Partial
	j.Options.Passkeys, j.RestoredOrigins, j.RestoredAt = kept.Passkeys, kept.Origins, kept.RestoredAt
	return j
}
