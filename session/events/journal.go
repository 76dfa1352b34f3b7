// Package events keeps what happens in sessions: their runs, the numbered
// events of each, and who follows them.
//
// The [Journal] has one [Writer] for each run that is going on, whose goroutine
// writes events in batches. Recording an event does not wait for the disk. A [Feed]
// reads the catalogue and is only woken from here, so its reader sees nothing that is
// not on disk. mask.go alone masks secrets in events. A [Reader] checks what callers
// may see and gives it to them.
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

// Keep is what is kept of a run's events, and for how long.
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

// Sealer seals what was masked, and opens it for readers that may see it.
type Sealer interface {
	Seal(plain []byte) ([]byte, error)
	Unseal(sealed []byte) ([]byte, error)
}

// Journal is the journal of a daemon. Its methods are safe for concurrent use.
type Journal struct {
	store Store
	seals Sealer
	now   func() time.Time
	log   *slog.Logger

	mu       sync.Mutex
	writers  map[string]*Writer // by session
	live     map[string]bool    // sessions that go on, also while they have no writer
	watchers map[string]map[*watcher]struct{}
}

// NewJournal makes a Journal. It has nothing to close but its writers.
func NewJournal(store Store, seals Sealer, now func() time.Time, log *slog.Logger) *Journal {
	return &Journal{store: store, seals: seals, now: now, log: log,
		writers: map[string]*Writer{}, live: map[string]bool{}, watchers: map[string]map[*watcher]struct{}{}}
}

// Flush returns when all events of a session so far are written, or when ctx ends or
// the catalogue does not take them now. It is for readers that want to see their own
// actions, and for calls whose event must be on disk before they answer.
func (j *Journal) Flush(ctx context.Context, sessionID string) {
	if w := j.writer(sessionID); w != nil {
		w.flush(ctx)
	}
}

// writer is that of a session's run; nil where none is going on.
func (j *Journal) writer(sessionID string) *Writer {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.writers[sessionID]
}

// Over notes that a session has ended: when its writer has ended too, there are no more
// events. A session goes on from its first [Journal.Begin] until then, whether it has a
// run or not.
func (j *Journal) Over(sessionID string) {
	j.mu.Lock()
	delete(j.live, sessionID)
	j.mu.Unlock()
	j.wake(sessionID)
}

// going reports whether there may be more to come of a session.
func (j *Journal) going(sessionID string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.live[sessionID] || j.writers[sessionID] != nil
}

// Read returns an event's data, with secrets masked unless whole is set. Events of pages,
// and what was masked, are sealed. If that cannot be opened, because the identity is
// missing or it is damaged, "sealed": true is added to what is kept in plain and it is
// no error: a reader is to get the other events.
func (j *Journal) Read(e profiles.Event, whole bool) (json.RawMessage, error) {
	if e.Sealed == nil || !whole && len(e.Data) > 0 {
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
	case err != nil || whole:
		return raw, err
	}
	data, err := fields(raw)
	if err != nil {
		return nil, err
	}
	masked, _ := maskFields(data)
	return json.Marshal(masked)
}

// fields reads an event's data back; there is none in nil.
func fields(raw []byte) (Fields, error) {
	data := Fields{}
	if len(raw) == 0 {
		return data, nil
	}
	err := json.Unmarshal(raw, &data)
	return data, fault.Wrap(err, fault.StoreFailed, "events.read", "a recorded event cannot be read")
}

// watcher is woken when there is more to read of a session.
type watcher struct {
	session string
	more    chan struct{} // one value stands for all that came before it is taken
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

// Followed reports whether anybody follows a session now.
func (j *Journal) Followed(sessionID string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.watchers[sessionID]) > 0
}

// wake notifies the followers of a session that there is more to read.
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
