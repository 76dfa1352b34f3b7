// Package autosave makes the automatic checkpoints of a live session: at an interval, and
// earlier after a navigation, after a login, when the last client disconnects, or after a turn
// of the conversation.
package autosave

import "time"

// Settings say when automatic checkpoints are made.
type Settings struct {
	Interval time.Duration
	// Each of these is a reason for a checkpoint before the interval ends.
	Navigation, Login, Disconnect, Message bool
	Keep                                   int // how many checkpoints of a session are kept
}

// Status is the state of a session's automatic checkpoints.
type Status struct {
	Settings
	SnapshotID string    // the newest checkpoint; "": none yet
	At         time.Time // when it was made, or was last found unchanged
	Failures   int       // in a row, since then
	Error      string    // of the last failure
}

// The reasons for an automatic checkpoint besides the interval, as in the API.
const (
	OnNavigation = "navigation"
	OnLogin      = "login"
	OnDisconnect = "disconnect"
	OnMessage    = "message"
)

// Answer is the wire format of a [Status].
type Answer struct {
	Interval   int64      `json:"interval_seconds"`
	On         []string   `json:"on"`
	Keep       int        `json:"keep"`
	SnapshotID *string    `json:"last_snapshot_id"`
	At         *time.Time `json:"last_saved_at"`
	Failures   int        `json:"failures"`
	Error      *string    `json:"last_error"`
}

// Answer returns the status in its wire format; nil for nil.
func (s *Status) Answer() *Answer {
	if s == nil {
		return nil
	}
	answer := &Answer{Interval: int64(s.Interval / time.Second), On: []string{}, Keep: s.Keep, Failures: s.Failures}
	if s.SnapshotID != "" {
		answer.SnapshotID = &s.SnapshotID
	}
	if s.Error != "" {
		answer.Error = &s.Error
	}
	if !s.At.IsZero() {
		at := s.At.UTC()
		answer.At = &at
	}
	for _, reason := range []struct {
		name string
		on   bool
	}{{OnNavigation, s.Navigation}, {OnLogin, s.Login}, {OnDisconnect, s.Disconnect}, {OnMessage, s.Message}} {
		if reason.on {
			answer.On = append(answer.On, reason.name)
		}
	}
	return answer
}
