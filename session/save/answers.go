package save

import (
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/session/library"
	"github.com/stasisd/stasis/session/login"
	"github.com/stasisd/stasis/state"
	"github.com/stasisd/stasis/state/report"
)

// DefaultOutcome tells what became of a user's default at a save.
type DefaultOutcome struct {
	Moved   bool   `json:"moved"`
	Version int64  `json:"version"`
	Reason  string `json:"reason,omitempty"`
	// LoginCheck is the check that was made before, where one was asked for.
	LoginCheck *login.Outcome `json:"login_check,omitempty"`
}

// EndAnswer is the answer of a delete; it is recorded with the session.
type EndAnswer struct {
	Success        bool                  `json:"success"`
	Deleted        bool                  `json:"deleted"`
	Message        string                `json:"message"`
	Snapshot       *library.SnapshotInfo `json:"snapshot"`
	Default        *DefaultOutcome       `json:"default"`
	UnsavedChanges bool                  `json:"unsaved_changes"`
	// LeftOut is what a selection of origins kept out of the snapshot.
	LeftOut []state.Component `json:"left_out,omitempty"`
}

// Whole is the answer with a snapshot that is whole.
func (e EndAnswer) Whole() EndAnswer {
	if e.Snapshot != nil {
		snapshot := e.Snapshot.Whole()
		e.Snapshot = &snapshot
	}
	return e
}

// CheckpointAnswer is the answer of a checkpoint.
type CheckpointAnswer struct {
	Success  bool                 `json:"success"`
	Message  string               `json:"message"`
	Snapshot library.SnapshotInfo `json:"snapshot"`
	Default  *DefaultOutcome      `json:"default"`
	// Unchanged: nothing has changed since the checkpoint that Snapshot is of.
	Unchanged bool `json:"unchanged"`
	// PausedMS is for how long Chrome stood still.
	PausedMS float64 `json:"paused_ms"`
}

// endAnswer is the answer of an end that saved.
func endAnswer(row profiles.Snapshot, j Job, m profiles.Moved) EndAnswer {
	info := library.InfoOf(row, row.CreatedAt)
	done := "session ended, environment saved"
	if j.GoesOn {
		done = "environment saved, the session runs on"
	}
	answer := EndAnswer{Success: true, Deleted: !j.GoesOn, Message: done, Snapshot: &info, LeftOut: report.Bounded(j.left)}
	if j.Move == nil && j.NotMoved == "" {
		return answer
	}
	answer.Default = &DefaultOutcome{Moved: m.Moved, Version: m.Version, Reason: m.Reason, LoginCheck: j.checked}
	if j.NotMoved != "" {
		answer.Default.Reason = j.NotMoved
	}
	if !m.Moved {
		answer.Message = done + "; the default was not moved: " + answer.Default.Reason
	}
	return answer
}
