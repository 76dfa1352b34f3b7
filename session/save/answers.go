package save

import (
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
	// LoginCheck is the login check that was made before the move; nil: none was
	// requested.
	LoginCheck *login.Outcome `json:"login_check,omitempty"`
}

// EndAnswer is the answer of a session's DELETE. It is the wire format, and is stored
// with the session.
type EndAnswer struct {
	Success        bool                  `json:"success"`
	Deleted        bool                  `json:"deleted"`
	Message        string                `json:"message"`
	Snapshot       *library.SnapshotInfo `json:"snapshot"`
	Default        *DefaultOutcome       `json:"default"`
	UnsavedChanges bool                  `json:"unsaved_changes"`
	// LeftOut is what a selection of origins left out of the snapshot.
	LeftOut []state.Component `json:"left_out,omitempty"`
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
	answer := EndAnswer{Success: true, Deleted: !j.Continues, Message: done, Snapshot: &info, LeftOut: report.Bounded(j.excluded)}
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
