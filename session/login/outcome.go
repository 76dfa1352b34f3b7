// Package login checks whether users' defaults are still logged in. Only the site knows,
// so a check opens the address in the user's settings and evaluates conditions there (see
// browser/logincheck): in a running Chrome or in a separate one.
//
// The result is an [Outcome], which is stored with the user. An expired login is an
// outcome, not an error. An error means that no Chrome could make the check.
package login

import (
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/browser"
	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Outcome is the result of a login check: the wire format and the stored record. It holds
// no secret: the address has neither query nor fragment.
type Outcome struct {
	LoggedIn   bool                `json:"logged_in"`
	CheckedAt  time.Time           `json:"checked_at"`
	URL        *string             `json:"url"`
	Status     *int64              `json:"status"`
	Conditions []browser.Condition `json:"conditions"`
	Error      *string             `json:"error"` // why the page could not be judged, or the login could not be saved
	DurationMS int64               `json:"duration_ms"`
	SnapshotID *string             `json:"snapshot_id"` // the checked default; nil for a check before a save
	Version    *int64              `json:"version"`
	// Failures is how many checks in a row ended with an error.
	Failures int64 `json:"failures"`
	// LoggedOutSince is when that version was first found logged out; nil if it was found
	// logged in since, or was never found logged out.
	LoggedOutSince *time.Time `json:"logged_out_since"`
}

// NotChecked returns the outcome of a check that could not be made because of err.
func NotChecked(at time.Time, err error) Outcome {
	text := "the check could not be made in a Chrome: " + fault.CodeOf(err).Text()
	return Outcome{CheckedAt: at.UTC(), Conditions: []browser.Condition{}, Error: &text}
}

// LastOutcome returns the outcome of the last check of a user's default; the zero value
// if there is none or it cannot be read.
func LastOutcome(u profiles.User) (last Outcome) {
	if len(u.LoginChecked) > 0 && json.Unmarshal(u.LoginChecked, &last) != nil {
		return Outcome{}
	}
	return last
}

// after fills in what depends on the previous outcome. expired reports that this version is
// found logged out for the first time.
func (o Outcome) after(last Outcome) (_ Outcome, expired bool) {
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
		o.LoggedOutSince, expired = &o.CheckedAt, true
	}
	return o, expired
}

// Verdict returns what a check is counted as.
func (o Outcome) Verdict() Verdict {
	switch {
	case o.Error != nil:
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
