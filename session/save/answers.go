package save

import (
	"cmp"
	"fmt"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// DefaultOutcome says whether a save moved the user's default and, if not, why. It is the
// wire format.
type DefaultOutcome struct {
	Moved   bool   `json:"moved"`
	Version int64  `json:"version"`
	Reason  string `json:"reason,omitempty"`
	// Conflict: it did not move because it had moved meanwhile.
	Conflict bool `json:"-"`
	// AfterCrash: it did not move because the snapshot was made after a crash.
	AfterCrash bool `json:"-"`
	// LoginCheck is the login check that was made before the move; nil: none was
	// requested.
	LoginCheck *login.Outcome `json:"login_check,omitempty"`
}

// EndAnswer is the answer of a session's DELETE. It is the wire format, and is stored
// with the session.
type EndAnswer struct {
	Success bool `json:"success"`
	Deleted bool `json:"deleted"`
	// Code is version_conflict if the caller asked for the default to move, and it did not,
	// because it had moved since the session started from it. "" otherwise.
	Code           fault.Code            `json:"code,omitempty"`
	Message        string                `json:"message"`
	Snapshot       *library.SnapshotInfo `json:"snapshot"`
	Default        *DefaultOutcome       `json:"default"`
	UnsavedChanges bool                  `json:"unsaved_changes"`
	// UndoUntil is until when a second end can save what this one discarded; nil: it cannot.
	UndoUntil *time.Time `json:"undo_until,omitempty"`
	// LeftOut is what a selection of origins left out of the snapshot.
	LeftOut []state.Component `json:"left_out,omitempty"`
	// Ended is how many sessions an end of several has ended.
	Ended int `json:"-"`
}

// With returns the answer to an end of several sessions together with that of another node.
func (e EndAnswer) With(other EndAnswer) EndAnswer {
	e.Ended += other.Ended
	e.Success, e.Deleted, e.UnsavedChanges = e.Success && other.Success, e.Deleted || other.Deleted, e.UnsavedChanges || other.UnsavedChanges
	e.Code = cmp.Or(e.Code, other.Code)
	if e.Deleted {
		e.Message = fmt.Sprintf("sessions ended: %d", e.Ended)
	}
	if e.Code != "" {
		e.Message += "; the default was not moved for all of them, because it had moved since they started from it"
	}
	return e
}

// Normalized returns the answer as clients get it; see [library.SnapshotInfo.Normalized].
func (e EndAnswer) Normalized() EndAnswer {
	if e.Snapshot != nil {
		snapshot := e.Snapshot.Normalized()
		e.Snapshot = &snapshot
	}
	return e
}

// CheckpointAnswer is the answer of a checkpoint. It is the wire format.
type CheckpointAnswer struct {
	Success  bool                 `json:"success"`
	Code     fault.Code           `json:"code,omitempty"` // as in [EndAnswer]
	Message  string               `json:"message"`
	Snapshot library.SnapshotInfo `json:"snapshot"`
	Default  *DefaultOutcome      `json:"default"`
	// Unchanged: nothing has changed since an earlier checkpoint, and Snapshot is that
	// one.
	Unchanged bool `json:"unchanged"`
	// PausedMS is how long Chrome was frozen, in milliseconds.
	PausedMS float64 `json:"paused_ms"`
}

// endAnswer returns the answer of a save: its snapshot, and whether the default moved.
func endAnswer(row profiles.Snapshot, j Job, m profiles.MoveResult) EndAnswer {
	info := library.InfoOf(row, row.CreatedAt)
	done := "session ended, environment saved"
	if j.Continues {
		done = "environment saved, the session continues"
	}
	if j.AfterEnd {
		done = "the session had already ended; its environment was kept and is saved now"
	}
	answer := EndAnswer{Success: true, Deleted: !j.Continues && !j.AfterEnd, Message: done, Snapshot: &info, LeftOut: report.Bounded(j.excluded)}
	if j.Move == nil && j.NotMoved == "" {
		return answer
	}
	answer.Default = &DefaultOutcome{Moved: m.Moved, Version: m.Version, Reason: m.Reason, LoginCheck: j.checked}
	if j.NotMoved != "" {
		answer.Default.Reason = j.NotMoved
	}
	switch {
	case m.Moved:
	case j.DefaultAsked && j.Move != nil:
		answer.Success, answer.Code = false, fault.VersionConflict
		answer.Message = done + answer.Default.kept()
	default:
		answer.Message = done + "; the default was not moved: " + answer.Default.Reason
	}
	return answer
}

// kept says why a default was kept that a caller asked to move, and how to move it anyway.
func (d DefaultOutcome) kept() string {
	return "; the default was not moved: " + d.Reason + "; repeat the call with default_conflict=overwrite to move it"
}

// Undoable adds to the answer of an end that saved nothing until when the session can still
// be saved.
func (e EndAnswer) Undoable(until time.Time) EndAnswer {
	e.UndoUntil = &until
	e.Message += "; until undo_until a second DELETE with save_snapshot_mode=filesystem, or a resume, can save it"
	return e
}

// AfterEnd adds to the answer to a repeated end whether the default moved.
func (e EndAnswer) AfterEnd(d *DefaultOutcome) EndAnswer {
	e.Default = d
	switch {
	case d.Moved:
		e.Message += "; the default was moved"
	case d.Conflict:
		e.Success, e.Code = false, fault.VersionConflict
		e.Message += d.kept()
	case d.AfterCrash:
		e.Success = false
		e.Message += d.kept()
	default:
		e.Message += "; the default was not moved: " + d.Reason
	}
	return e
}
