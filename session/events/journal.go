// Package events records what happens in sessions: their runs, and the numbered events of
// each run. It also lets callers follow them.
//
// The [Journal] has one [Writer] for each current run; its goroutine writes events in
// batches. Recording an event does not wait for the disk. A [Feed] reads the catalogue,
// and the Journal only wakes it, so its reader sees only events that are on disk. mask.go
// masks secrets in events; nothing else does. A [Reader] checks callers' rights and
// returns the events.
package events

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
)

// Keep limits how many of a run's events are kept.
var Keep = profiles.EventBounds{Count: 10_000, Bytes: 32 << 20}

// KeepFor is how long an event is kept.
const KeepFor = 30 * 24 * time.Hour

// Store is what the journal needs of the catalogue; see [profiles.RunStore] and
// [profiles.EventStore].
type Store interface {
	BeginRun(ctx context.Context, r profiles.Run) (profiles.Run, error)
	EndRun(ctx context.Context, e profiles.RunEnd, keep profiles.EventBounds) (profiles.Run, error)
	Runs(ctx context.Context, sessionID string) ([]profiles.Run, error)
	AddEvents(ctx context.Context, runID string, events []profiles.Event, keep profiles.EventBounds) ([]profiles.Event, error)
	Events(ctx context.Context, runID string, after int64, limit int) (profiles.EventPage, error)
}

// Sealer seals events with secrets, and opens them for readers that may see secrets.
type Sealer interface {
	Seal(plain []byte) ([]byte, error)
	Unseal(sealed []byte) ([]byte, error)
}

// Journal is the daemon's journal of events. Its methods are safe for concurrent use.
type Journal struct {
	store Store
	seals Sealer
	now   func() time.Time
	log   *slog.Logger

	mu       sync.Mutex
	writers  map[string]*Writer // by session
	live     map[string]bool    // sessions that have not ended, also while they have no writer
	watchers map[string]map[*watcher]struct{}
}

// NewJournal makes a Journal. Only its writers need to be closed.
func NewJournal(store Store, seals Sealer, now func() time.Time, log *slog.Logger) *Journal {
	return &Journal{store: store, seals: seals, now: now, log: log,
		writers: map[string]*Writer{}, live: map[string]bool{}, watchers: map[string]map[*watcher]struct{}{}}
}

// Flush returns when all events of a session so far are written, when ctx ends, or when
// the catalogue refuses them. It is for readers that must see their own actions, and for
// calls whose event must be on disk before they return.
func (j *Journal) Flush(ctx context.Context, sessionID string) {
	if w := j.writer(sessionID); w != nil {
		w.flush(ctx)
	}
}

// writer returns the writer of a session's current run; nil if there is none.
func (j *Journal) writer(sessionID string) *Writer {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.writers[sessionID]
}

// SessionEnded records that a session has ended. Once its writer has ended too, there are
// no more events. A session counts as live from its first [Journal.Begin] until then,
// with or without a run.
func (j *Journal) SessionEnded(sessionID string) {
	j.mu.Lock()
	delete(j.live, sessionID)
	j.mu.Unlock()
	j.wake(sessionID)
}

// mayContinue reports whether a session may still get events.
func (j *Journal) mayContinue(sessionID string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.live[sessionID] || j.writers[sessionID] != nil
}

// Read returns an event's data. Secrets are masked unless secrets is set. Page events and
// masked secrets are stored sealed. If they cannot be unsealed, because the identity is
// missing or they are damaged, Read returns the plain part with "sealed": true. That is
// not an error, so that a reader still gets the other events.
func (j *Journal) Read(e profiles.Event, secrets bool) (json.RawMessage, error) {
	if e.Sealed == nil || !secrets && len(e.Data) > 0 {
		return e.Data, nil
	}
	raw, err := j.seals.Unseal(e.Sealed)
	switch {
	case fault.Is(err, fault.IdentityMissing), fault.Is(err, fault.ArchiveDamaged):
		data, err := fields(e.Data)
		if err != nil {
			return nil, err
		}
		data["sealed"] = true
		return json.Marshal(data)
	case err != nil || secrets:
		return raw, err
	}
	data, err := fields(raw)
	if err != nil {
		return nil, err
	}
	masked, _ := maskFields(data)
	return json.Marshal(masked)
}

// fields parses an event's data; nil gives empty Fields.
func fields(raw []byte) (Fields, error) {
	data := Fields{}
	if len(raw) == 0 {
		return data, nil
	}
	err := json.Unmarshal(raw, &data)
	return data, fault.Wrap(err, fault.StoreFailed, "events.read", "a stored event cannot be read")
}

// watcher is woken when a session may have new events.
type watcher struct {
	session string
	more    chan struct{} // one value stands for any number of wake-ups
}

func (j *Journal) watch(sessionID string) *watcher {
	w := &watcher{session: sessionID, more: make(chan struct{}, 1)}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.watchers[sessionID] == nil {
		j.watchers[sessionID] = map[*watcher]struct{}{}
	}
	j.watchers[sessionID][w] = struct{}{}
	return w
}

func (j *Journal) unwatch(w *watcher) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.watchers[w.session], w)
	if len(j.watchers[w.session]) == 0 {
		delete(j.watchers, w.session)
	}
}

// Followed reports whether any reader follows a session now.
func (j *Journal) Followed(sessionID string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.watchers[sessionID]) > 0
}

// wake tells the followers of a session to read again.
func (j *Journal) wake(sessionID string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for w := range j.watchers[sessionID] {
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
}
