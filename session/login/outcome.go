// Package login checks whether users' defaults are still logged in. Only the site knows,
// so a check opens the address that the user's settings name and looks at conditions
// there (see browser/logincheck): in a Chrome that runs already, or in one of its own.
//
// Out comes an [Outcome], which is kept with the user. A login that is over is an
// outcome and no error; an error is that no Chrome could be asked.
package login

import (
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Outcome is what a login check found. It is the wire shape and the record. It holds no
// secret: the address has neither query nor fragment.
type Outcome struct {
	LoggedIn   bool                `json:"logged_in"`
	CheckedAt  time.Time           `json:"checked_at"`
	URL        *string             `json:"url"`
	Status     *int64              `json:"status"`
	Conditions []browser.Condition `json:"conditions"`
	Error      *string             `json:"error"` // why the page could not be judged, or the login could not be saved
	DurationMS int64               `json:"duration_ms"`
	SnapshotID *string             `json:"snapshot_id"` // of the default that was checked; nil before a save
	Version    *int64              `json:"version"`
	// Failures is how many checks in a row had an error.
	Failures int64 `json:"failures"`
	// LoggedOutSince is when that version was first found logged out; nil if it was found
	// logged in since, or was never found logged out.
	LoggedOutSince *time.Time `json:"logged_out_since"`
}

// NotAsked is the outcome of a check that could not be made, because of err.
func NotAsked(at time.Time, err error) Outcome {
	text := "a Chrome could not be asked: " + fault.CodeOf(err).Text()
	return Outcome{CheckedAt: at.UTC(), Conditions: []browser.Condition{}, Error: &text}
}

// LastOutcome is the outcome of the last check of a user's default; the zero value if
// there is none or it cannot be read.
func LastOutcome(u profiles.User) (last Outcome) {
	if len(u.LoginChecked) > 0 && json.Unmarshal(u.LoginChecked, &last) != nil {
		return Outcome{}
	}
	return last
}

// after fills in what follows from the check before. over reports that this version is
// found logged out for the first time.
func (o Outcome) after(last Outcome) (_ Outcome, over bool) {
	same := last.Version != nil && *last.Version == *o.Version
	switch {
	case o.Error != nil:
		o.Failures = last.Failures + 1
		if same && !o.LoggedIn {
			o.LoggedOutSince = last.LoggedOutSince
		}
	case o.LoggedIn:
	case same && last.LoggedOutSince != nil:
		o.LoggedOutSince = last.LoggedOutSince
	default:
		o.LoggedOutSince, over = &o.CheckedAt, true
	}
	return o, over
}

// verdict is what a check is counted as.
func (o Outcome) verdict(err error) Verdict {
	switch {
	case err != nil || o.Error != nil:
		return Failed
	case o.LoggedIn:
		return LoggedIn
	default:
		return LoggedOut
	}
}

// Verdict is what a login check is counted as.
type Verdict string

// The verdicts.
const (
	LoggedIn  Verdict = "logged_in"
	LoggedOut Verdict = "logged_out"
	Failed    Verdict = "failed" // the page could not be judged
)

// Meter counts login checks. Its methods are safe for concurrent use and do not wait.
type Meter interface {
	LoginChecked(verdict Verdict)
	// LoginExpired counts a default that was found logged out, once for each version.
	LoginExpired()
}
