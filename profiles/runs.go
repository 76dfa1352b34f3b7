package profiles

import (
	"context"
	"encoding/json"
	"time"
)

// RunStatus is how a run is. All but RunRunning are final.
type RunStatus string

// The statuses of a run.
const (
	RunRunning   RunStatus = "running"
	RunCompleted RunStatus = "completed" // ended as somebody asked
	RunFailed    RunStatus = "failed"    // its Chrome or its daemon died, or a save cost it its Chrome
	RunCancelled RunStatus = "cancelled" // ended by the daemon: a limit, or its stop
)

// CauseAsked is the cause of a run that ended because somebody asked for it.
const CauseAsked = "asked"

// Run is one lifetime of a session's browser.
type Run struct {
	ID        string
	SessionID string
	Number    int64 // 1, 2, … within the session, given by the catalogue
	Status    RunStatus
	Cause     string // why it ended, for people
	StartedAt time.Time
	EndedAt   time.Time // zero while it runs
}

// Event is one numbered record in a run.
type Event struct {
	RunID    string
	Sequence int64 // 1, 2, … within the run without gaps, given by the catalogue
	Type     string
	At       time.Time
	Data     json.RawMessage // kept byte for byte
	// Sealed is Data before secrets in it were masked: opaque here. nil where
	// there were none.
	Sealed []byte
}

// Size is what an event counts against [EventBounds], in bytes.
func (e Event) Size() int64 { return int64(len(e.Type) + len(e.Data) + len(e.Sealed)) }

// SealedEvent is what an event keeps sealed.
type SealedEvent struct {
	RunID    string
	Sequence int64
	Sealed   []byte
	Anew     []byte // what is to take its place, for [EventStore.ResealEvents]; nil: nothing is
}

// EventBounds say what is kept of a run's events; zero values bound nothing. What
// is over is trimmed from the oldest on. The newest event always stays.
type EventBounds struct {
	Count int64
	Bytes int64 // sum of the events' sizes
}

// EventPage is a part of a run's events, in order.
type EventPage struct {
	Events          []Event
	First           int64 // sequence of the oldest event that is kept; LatestExclusive if none is
	LatestExclusive int64 // sequence that the next event will have
	NextAfter       int64 // the after of the next page
	Gap             bool  // events after the one asked for, and before this page, were trimmed
	HasMore         bool  // there are events after this page
}

// MaxEventPage bounds the events of a page, in bytes; a page has one at least.
const MaxEventPage = 4 << 20

// RunEnd is how a run ends, with the events that are its last.
type RunEnd struct {
	RunID   string
	Status  RunStatus
	Cause   string
	EndedAt time.Time
	Last    []Event
}

// RunStore keeps the runs of sessions.
type RunStore interface {
	// BeginRun records a run that runs, and gives it its number. A session that
	// is not there is session_not_found.
	BeginRun(ctx context.Context, r Run) (Run, error)
	// EndRun ends a run, once: of one that has ended nothing changes, and it
	// comes back as it is. By a clock that was set back it ends when it began. A run
	// that is not there is run_not_found.
	EndRun(ctx context.Context, e RunEnd, keep EventBounds) (Run, error)
	Run(ctx context.Context, id string) (Run, error)
	// Runs lists a session's, oldest first. OpenRuns lists those of all sessions
	// that have not ended.
	Runs(ctx context.Context, sessionID string) ([]Run, error)
	OpenRuns(ctx context.Context) ([]Run, error)
}

// EventStore keeps the events of runs. A run that does not exist is run_not_found.
type EventStore interface {
	// AddEvents appends to a run, all of them or none, gives each its sequence in
	// the transaction that writes it, and trims what is over. A run that has ended
	// takes no more (session_not_running).
	AddEvents(ctx context.Context, runID string, events []Event, keep EventBounds) ([]Event, error)
	// Events gives those after a sequence, at most limit and [MaxEventPage]. An
	// after beyond the last event is invalid_field.
	Events(ctx context.Context, runID string, after int64, limit int) (EventPage, error)
	// ExpireEvents trims from every run the oldest events, as far as all of them
	// were made before the time.
	ExpireEvents(ctx context.Context, before time.Time) error

	// SealedEvents walks over what events of all runs keep sealed, in an order of its
	// own: those behind after (the zero value: from the first), of which only the
	// place counts, at most limit (0: no bound) and [MaxEventPage] bytes, but one at
	// least. None are left where it gives none.
	SealedEvents(ctx context.Context, after SealedEvent, limit int) ([]SealedEvent, error)
	// ResealEvents puts each Anew in the place of its Sealed, all of them or none,
	// and counts it against the event's and the run's size. An event that is trimmed
	// by now, or has something else sealed, is passed over. It tells how many it wrote.
	ResealEvents(ctx context.Context, events []SealedEvent) (written int, err error)
}
