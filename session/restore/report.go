package restore

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// SourceType is the kind of a restore's source.
type SourceType string

const (
	SourceSession     SourceType = "session"
	SourceEnvironment SourceType = "environment"
	SourceUserDefault SourceType = "user_default"
)

// Source names what a create asked to restore.
type Source struct {
	Type SourceType `json:"type"`
	ID   string     `json:"id"`
}

// Versions are the version of the Chrome that saved and of the one that runs.
type Versions struct {
	Saved   string `json:"saved"`
	Running string `json:"running"`
}

// Notes are the notes that were restored with an environment. They are the wire format of
// a report's notes, and what a snapshot keeps of them.
type Notes struct {
	SessionID string          `json:"session_id"` // under which they were stored
	StoredAt  time.Time       `json:"stored_at"`
	Data      json.RawMessage `json:"data"`
}

// The outcomes of a restore's verification.
const (
	VerificationPending  = "pending"
	VerificationOK       = "ok"
	VerificationMismatch = "mismatch"
)

// The restore paths.
const (
	PathParked  = "parked"
	PathStandby = "standby" // in a Chrome that had loaded it already
	PathWarm    = "warm"    // in a spare
	PathCold    = "cold"    // in a Chrome that was started for it
)

// Report says by name what a restore restored. It is the wire format of "restored" and of
// GET …/restore-report.
type Report struct {
	Source         Source            `json:"source"`
	SnapshotID     string            `json:"snapshot_id"`
	RequestedMode  string            `json:"requested_mode"` // memory | filesystem
	Mode           string            `json:"mode"`
	Path           string            `json:"path"` // parked | standby | warm | cold
	FallbackReason string            `json:"fallback_reason,omitempty"`
	DurationMS     int64             `json:"duration_ms"`
	Datadir        state.Datadir     `json:"datadir"`
	Chrome         Versions          `json:"chrome"`
	Components     []state.Component `json:"components"`
	Verification   string            `json:"verification"` // pending | ok | mismatch
	// Differences are what the verification found: what was not restored, and what the
	// sites have changed since.
	Differences []state.Difference `json:"differences"`
	Warnings    []string           `json:"warnings"`
	// Losses is how many warnings at the start of Warnings are about mass losses.
	// Unlisted is how many warnings the last one counts without listing them. A stored
	// report has neither, because it gets no more warnings.
	Losses   int `json:"-"`
	Unlisted int `json:"-"`
	// Notes are the notes of agents that were restored with the environment; nil: none.
	Notes *Notes `json:"notes,omitempty"`
}

// Normalized returns the report with empty lists in place of nil ones.
func (r Report) Normalized() Report {
	if r.Components == nil {
		r.Components = []state.Component{}
	}
	if r.Warnings == nil {
		r.Warnings = []string{}
	}
	if r.Differences == nil {
		r.Differences = []state.Difference{}
	}
	return r
}

// reportUnusedProfile records in the report that the profile was not used.
func (r *Report) reportUnusedProfile() {
	r.Datadir = state.DatadirNone
	reason := "the profile was saved by Chrome " + r.Chrome.Saved + ", which is newer than the running " + r.Chrome.Running +
		", so it was not used; Stasis applied the saved state document to an empty profile"
	r.Warnings = append(r.Warnings, reason)
	r.addFallbackReason(reason)
}

// addFallbackReason adds a reason why a slower path was taken; "" adds none.
func (r *Report) addFallbackReason(why string) {
	r.FallbackReason = joinReasons(r.FallbackReason, why)
}

// joinReasons joins two reasons; "" is none.
func joinReasons(why, more string) string {
	if why != "" && more != "" {
		return why + "; " + more
	}
	return why + more
}

// bound limits the report to a size that can be returned and stored. Sums stay exact, and
// a last entry counts what is not listed.
func (r *Report) bound() {
	r.warn()
	r.Components, r.Differences = report.Bounded(r.Components), state.BoundedDifferences(r.Differences)
}

// Warn adds a warning.
func (r *Report) Warn(warning string) { r.warn(warning) }

// warn adds warnings. It also replaces the warnings of mass losses by those that follow
// from the current lines.
func (r *Report) warn(more ...string) {
	all := slices.Clone(r.Warnings)
	if r.Unlisted > 0 {
		all = all[:len(all)-1] // the count comes last
	}
	losses := state.MassLosses(r.Components)
	all = slices.Concat(losses, all[r.Losses:], more)
	r.Losses = len(losses)
	r.Warnings, r.Unlisted = report.BoundedWarnings(all, r.Unlisted)
}
