package agent

import (
	"cmp"

	"github.com/stasisd/stasis/profiles"
)

// Status is the answer of GET …/status. Stasis has no agent itself, so the execution
// status follows from the session's messages.
//
// Status.Status combines both in one word, as the session API's clients expect: ready,
// running, waiting_for_input, paused, finished or error.
type Status struct {
	Status          string `json:"status"`
	SessionStatus   string `json:"session_status"`
	ExecutionStatus string `json:"execution_status"`
}

// StatusOf returns the status of a session and of its task. Without a message, the task
// has the session's status.
func StatusOf(rec profiles.Session) Status {
	task := cmp.Or(rec.Execution, profiles.ExecutionRunning)
	if rec.Status.Ended() && task != profiles.ExecutionFinished && task != profiles.ExecutionError {
		task = profiles.ExecutionFinished // no agent continues it
		if rec.Status == profiles.StatusError {
			task = profiles.ExecutionError
		}
	}
	a := Status{Status: string(rec.Status), SessionStatus: string(rec.Status), ExecutionStatus: string(task)}
	switch {
	case rec.Status == profiles.StatusError, rec.Status == profiles.StatusPaused:
	case rec.Status.Ended(), rec.Execution != "":
		a.Status = string(task)
	case rec.Status == profiles.StatusInitializing:
		a.Status = string(profiles.StatusReady)
	}
	return a
}
