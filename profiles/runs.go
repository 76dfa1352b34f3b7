package profiles

import (
	"context"
	"encoding/json"
	"time"
)

// RunStatus is the state of a run. All but RunRunning are final.
type RunStatus string

// The statuses of a run.
const (
	RunRunning   RunStatus = "running"
	RunCompleted RunStatus = "completed" // ended by a request
	RunFailed    RunStatus = "failed"    // its Chrome or its daemon died, or a failed save ended its Chrome
	RunCancelled RunStatus = "cancelled" // ended by the daemon: a limit or a shutdown
)

// CauseRequested is the cause of a run that a request ended.
const CauseRequested = "asked"

// Run is one lifetime of a session's browser.
type Run struct {
	ID        string
	SessionID string
	Number    int64 // 1, 2, … within the session; set by the catalogue
	Status    RunStatus
	Cause     string // why it ended, for people
	StartedAt time.Time
	EndedAt   time.Time // zero while it runs
}

// Event is one numbered record in a run.
type Event struct {
	RunID    string
	Sequence int64 // 1, 2, … within the run without gaps; set by the catalogue
	Type     string
	At       time.Time
	Data     json.RawMessage // stored byte for byte
	// Sealed is Data before its secrets were masked, sealed and opaque here. nil if there
	// were no secrets.
	Sealed []byte
}

// Size returns the bytes of an event that count against [EventBounds].
func (e Event) Size() int64 { return int64(len(e.Type) + len(e.Data) + len(e.Sealed)) }

// SealedEvent is the sealed data of an event.
type SealedEvent struct {
	RunID       string
	Sequence    int64
	Sealed      []byte
	Replacement []byte // the data to replace Sealed, for [EventStore.ResealEvents]; nil: no change
}

// EventBounds limit which of a run's events are kept; zero means no limit. The oldest
// events beyond the limits are trimmed. The newest event always stays.
type EventBounds struct {
	Count int64
	Bytes int64 // sum of the events' sizes
}

// EventPage is a part of a run's events, in order.
type EventPage struct {
	Events          []Event
	First           int64 // sequence of the oldest event kept; LatestExclusive if none is
	LatestExclusive int64 // sequence of the next event
	NextAfter       int64 // value of after for the next page
	Gap             bool  // events after the requested sequence and before this page were trimmed
	HasMore         bool  // more events follow this page
}

// MaxEventPage limits the events of a page, in bytes. A page has at least one.
const MaxEventPage = 4 << 20

// RunEnd describes how a run ends, with its last events.
type RunEnd struct {
	RunID   string
	Status  RunStatus
	Cause   string
	EndedAt time.Time
	Last    []Event
}

// RunStore keeps the runs of sessions.
type RunStore interface {
	// BeginRun records a running run and sets its number. An unknown session is
	// session_not_found.
	BeginRun(ctx context.Context, r Run) (Run, error)
	// EndRun ends a run once. A run that has ended is returned unchanged. If the clock was
	// set back, the run ends at the time it began. An unknown run is run_not_found.
	EndRun(ctx context.Context, e RunEnd, keep EventBounds) (Run, error)
	Run(ctx context.Context, id string) (Run, error)
	// Runs lists a session's runs, oldest first. OpenRuns lists the runs of all sessions
	// that have not ended.
	Runs(ctx context.Context, sessionID string) ([]Run, error)
	OpenRuns(ctx context.Context) ([]Run, error)
}

// EventStore keeps the events of runs. An unknown run is run_not_found.
type EventStore interface {
	// AddEvents appends to a run, all events or none. It sets their sequences in the same
	// transaction and trims events beyond the bounds. A run that has ended accepts no
	// events (session_not_running).
	AddEvents(ctx context.Context, runID string, events []Event, keep EventBounds) ([]Event, error)
	// Events returns the events after a sequence, up to limit and [MaxEventPage]. An after
	// beyond the last event is invalid_field.
	Events(ctx context.Context, runID string, after int64, limit int) (EventPage, error)
	// ExpireEvents trims from every run its oldest events, up to the first event that is
	// not older than the time.
	ExpireEvents(ctx context.Context, before time.Time) error

	// SealedEvents iterates over the sealed data of all runs' events, in its own fixed
	// order. It returns those after the position of after; the zero value starts at the
	// first. It returns up to limit (0: no limit) and [MaxEventPage] bytes, but at least
	// one. An empty result is the end.
	SealedEvents(ctx context.Context, after SealedEvent, limit int) ([]SealedEvent, error)
	// ResealEvents replaces each Sealed by its Replacement, all of them or none, and
	// updates the sizes of the event and the run. It skips events that were trimmed or
	// whose sealed data has changed. written counts the replaced ones.
	ResealEvents(ctx context.Context, events []SealedEvent) (written int, err error)
}
