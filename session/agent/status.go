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

// taskReady is the execution status of a session without a task.
const taskReady profiles.Execution = "ready"

// StatusOf returns the status of a session and of its task. hasAgent reports whether an
// agent is attached: a task that waited for one is then running.
func StatusOf(rec profiles.Session, hasAgent bool) Status {
	task := cmp.Or(rec.Execution, taskReady)
	if task == profiles.ExecutionWaitingForAgent && hasAgent {
		task = profiles.ExecutionRunning
	}
	if rec.Status.Ended() && task != profiles.ExecutionFinished && task != profiles.ExecutionError {
		task = profiles.ExecutionFinished // no agent continues it
		if rec.Status == profiles.StatusError {
			task = profiles.ExecutionError
		}
	}
	a := Status{Status: string(rec.Status), SessionStatus: string(rec.Status), ExecutionStatus: string(task)}
	switch {
	case rec.Status == profiles.StatusError, rec.Status == profiles.StatusPaused:
	case task == profiles.ExecutionWaitingForAgent: // clients of the session API do not know it
		a.Status = string(profiles.ExecutionRunning)
	case rec.Status.Ended(), rec.Execution != "":
		a.Status = string(task)
	case rec.Status == profiles.StatusInitializing:
		a.Status = string(profiles.StatusReady)
	}
	return a
}
