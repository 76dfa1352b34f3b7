package library

import (
	"encoding/json"
	"time"

	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/snapshot"
	"github.com/stasisd/stasis/state"
)

// LocationOf returns where the store has a session's snapshots.
func LocationOf(userID, sessionID string) snapshot.Location {
	return snapshot.Location{Owner: profiles.OwnerOf(userID), Session: sessionID, Scope: "agent", ScopeID: "browser"}
}

// Report is what a save reports of the environment: how much of each kind was saved, and
// what was not. It is stored with the snapshot's record.
type Report struct {
	Components []state.Component `json:"components"`
	Warnings   []string          `json:"warnings"`
	Logins     []state.Login     `json:"logins"`
	// Damaged marks a checkpoint with damage. A session is restored from such a
	// checkpoint only if it has no other snapshot.
	Damaged bool `json:"damaged,omitempty"`
}

// ReportOf returns the report in a snapshot's record; the zero Report if there is none.
func ReportOf(row profiles.Snapshot) Report {
	var r Report
	if json.Unmarshal(row.Report, &r) != nil {
		return Report{}
	}
	return r
}

// SnapshotInfo describes a snapshot to a caller. It is the wire format.
type SnapshotInfo struct {
	ID         string            `json:"id"`
	SessionID  string            `json:"session_id"`
	UserID     string            `json:"user_id"`
	Mode       string            `json:"mode"`
	Rescue     bool              `json:"rescue"`
	Auto       bool              `json:"auto"`
	Label      string            `json:"label,omitempty"`
	CreatedAt  time.Time         `json:"created_at"`
	ExpiresAt  *time.Time        `json:"expires_at"`
	SizeBytes  int64             `json:"size_bytes"` // of the stored, sealed archive
	Datadir    string            `json:"datadir"`
	Chrome     string            `json:"chrome"`
	Engine     string            `json:"engine"`
	Components []state.Component `json:"components"`
	Warnings   []string          `json:"warnings"`
	Logins     []state.Login     `json:"logins"`
}

// InfoOf describes a committed snapshot. now decides which logins have expired.
func InfoOf(row profiles.Snapshot, now time.Time) SnapshotInfo {
	info := SnapshotInfo{
		ID: row.ID, SessionID: row.SessionID, UserID: row.UserID, Mode: row.Mode, Rescue: row.Rescue, Auto: row.Auto, Label: row.Label,
		CreatedAt: row.CreatedAt, SizeBytes: row.SizeBytes, Datadir: row.Datadir, Chrome: row.Chrome,
		Engine: row.Engine, Components: []state.Component{}, Warnings: []string{}, Logins: []state.Login{},
	}
	if !row.ExpiresAt.IsZero() {
		info.ExpiresAt = &row.ExpiresAt
	}
	report := ReportOf(row)
	if report.Components != nil {
		info.Components, info.Warnings = report.Components, report.Warnings
	}
	for _, l := range report.Logins {
		info.Logins = append(info.Logins, l.At(now))
	}
	return info
}

// Normalized returns the description with empty lists in place of nil ones, and times in
// UTC.
func (s SnapshotInfo) Normalized() SnapshotInfo {
	s.Components, s.Warnings, s.Logins = orEmpty(s.Components), orEmpty(s.Warnings), orEmpty(s.Logins)
	s.CreatedAt = s.CreatedAt.UTC()
	switch {
	case s.ExpiresAt == nil:
	case s.ExpiresAt.IsZero():
		s.ExpiresAt = nil
	default:
		at := s.ExpiresAt.UTC()
		s.ExpiresAt = &at
	}
	return s
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
