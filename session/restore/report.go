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

// Source names what a restore was asked to bring back.
type Source struct {
	Type SourceType `json:"type"`
	ID   string     `json:"id"`
}

// Versions are the Chrome that saved and the one that runs.
type Versions struct {
	Saved   string `json:"saved"`
	Running string `json:"running"`
}

// Notes are the notes that came with an environment: the wire shape of a report's
// notes, and what a snapshot keeps of them.
type Notes struct {
	SessionID string          `json:"session_id"` // that they were stored under
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
	PathStandby = "standby" // in a Chrome that had it already
	PathWarm    = "warm"    // in a spare
	PathCold    = "cold"    // in a Chrome that was started for it
)

// Report says what a restore brought back, by name. It is the wire shape of
// "restored" and of GET …/restore-report.
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
	// Differences are what the verification found: what did not come back, and
	// what the sites have changed since.
	Differences []state.Difference `json:"differences"`
	Warnings    []string           `json:"warnings"`
	// Losses is how many of the first warnings are of mass losses, and Unlisted
	// how many warnings one of them counts. A report that was stored has neither:
	// it gets no more warnings.
	Losses   int `json:"-"`
	Unlisted int `json:"-"`
	// Notes are what agents noted and came with the environment; nil: nothing.
	Notes *Notes `json:"notes,omitempty"`
}

// Whole is the report with empty lists for absent ones.
func (r Report) Whole() Report {
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

// setAside says that the profile was not used.
func (r *Report) setAside() {
	r.Datadir = state.DatadirNone
	reason := "the profile was saved by Chrome " + r.Chrome.Saved + ", newer than " + r.Chrome.Running +
		" which runs, and is not used: what had been read of it was laid on an empty profile"
	r.Warnings = append(r.Warnings, reason)
	r.fellBack(reason)
}

// fellBack adds a reason why a slower path was taken; "" is none.
func (r *Report) fellBack(why string) {
	r.FallbackReason = also(r.FallbackReason, why)
}

// also adds a reason to another; "" is none.
func also(why, more string) string {
	if why != "" && more != "" {
		return why + "; " + more
	}
	return why + more
}

// bound makes the report one that can be answered and kept: sums stay, and what is
// not listed is counted.
func (r *Report) bound() {
	r.warn()
	r.Components, r.Differences = report.Bounded(r.Components), state.BoundedDifferences(r.Differences)
}

// warn adds warnings, and makes those of mass losses anew from the lines as they
// are now.
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
