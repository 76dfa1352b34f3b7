// Package autosave makes the automatic checkpoints of a live session: at an interval,
// and sooner after a navigation, a login, or when the last client has left.
package autosave

import "time"

// Settings say when automatic checkpoints are made.
type Settings struct {
	Interval time.Duration
	// Each of these is a reason for a checkpoint before the interval is over.
	Navigation, Login, Disconnect bool
	Keep                          int // how many of a session are kept
}

// Status is the state of a session's automatic checkpoints.
type Status struct {
	Settings
	SnapshotID string    // of the newest; "": there is none yet
	At         time.Time // when it was made, or found to be true still
	Failures   int       // in a row, since then
	Error      string    // of the last failure
}

// The reasons for an automatic checkpoint besides the interval, on the wire.
const (
	OnNavigation = "navigation"
	OnLogin      = "login"
	OnDisconnect = "disconnect"
)

// Answer is a [Status] on the wire.
type Answer struct {
	Interval   int64      `json:"interval_seconds"`
	On         []string   `json:"on"`
	Keep       int        `json:"keep"`
	SnapshotID *string    `json:"last_snapshot_id"`
	At         *time.Time `json:"last_saved_at"`
	Failures   int        `json:"failures"`
	Error      *string    `json:"last_error"`
}

// Answer is the status on the wire; nil for nil.
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
	}{{OnNavigation, s.Navigation}, {OnLogin, s.Login}, {OnDisconnect, s.Disconnect}} {
		if reason.on {
			answer.On = append(answer.On, reason.name)
		}
	}
	return answer
}
