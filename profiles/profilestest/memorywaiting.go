package profilestest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stasisd/stasis/profiles"
)

// MemoryWaiting is a [profiles.WaitingStore] in memory, of all nodes of a test. Its methods are
// safe for concurrent use.
type MemoryWaiting struct {
	now      func() time.Time
	mu       sync.Mutex
	rows     []memoryWaiting
	sessions map[string]int64 // by user
	reads    int
	err      error
}

type memoryWaiting struct {
	profiles.WaitingCreate
	paused time.Time
}

// NewMemoryWaiting makes a MemoryWaiting.
func NewMemoryWaiting(now func() time.Time) *MemoryWaiting {
	return &MemoryWaiting{now: now, sessions: map[string]int64{}}
}

// SetSessions sets how many sessions a user has.
func (m *MemoryWaiting) SetSessions(userID string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions[userID] = n
}

// Fail has all methods return an error; nil: they work again.
func (m *MemoryWaiting) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

// Reads returns how often Waiting was called.
func (m *MemoryWaiting) Reads() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}

// BeginWaiting implements [profiles.WaitingStore].
func (m *MemoryWaiting) BeginWaiting(_ context.Context, w profiles.WaitingCreate, pause time.Duration) (time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return time.Time{}, m.err
	}
	if w.Since.IsZero() {
		w.Since = m.now()
	}
	w.Turn = 0
	m.rows = slices.DeleteFunc(m.rows, func(r memoryWaiting) bool { return r.ID == w.ID })
	m.rows = append(m.rows, memoryWaiting{w, m.now().Add(pause)})
	slices.SortStableFunc(m.rows, func(a, b memoryWaiting) int { return a.Since.Compare(b.Since) })
	return w.Since, nil
}

// TakeTurn implements [profiles.WaitingStore].
func (m *MemoryWaiting) TakeTurn(_ context.Context, id string, fresh time.Duration) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.rows, func(r memoryWaiting) bool { return r.ID == id && r.Turn == 0 })
	if i < 0 || m.err != nil {
		return false, m.err
	}
	var last int64
	for _, r := range m.rows {
		last = max(last, r.Turn)
	}
	own := &m.rows[i]
	own.Turn, own.paused = last+1, m.now().Add(fresh)
	user, key := own.UserID, own.KeyID
	m.rows = slices.DeleteFunc(m.rows, func(r memoryWaiting) bool {
		return m.former(r) && r.Turn <= last && r.UserID == user && r.KeyID == key
	})
	m.forget()
	return true, nil
}

// EndWaiting implements [profiles.WaitingStore].
func (m *MemoryWaiting) EndWaiting(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	m.rows = slices.DeleteFunc(m.rows, func(r memoryWaiting) bool { return r.ID == id })
	m.forget()
	return nil
}

// forget removes the turns of users for whom nothing waits. The caller holds the lock.
func (m *MemoryWaiting) forget() {
	waits := map[string]bool{}
	for _, r := range m.rows {
		waits[r.UserID] = waits[r.UserID] || r.Turn == 0
	}
	m.rows = slices.DeleteFunc(m.rows, func(r memoryWaiting) bool { return m.former(r) && !waits[r.UserID] })
}

// former reports whether a create had its turn, which is no longer fresh.
func (m *MemoryWaiting) former(r memoryWaiting) bool { return r.Turn > 0 && !r.paused.After(m.now()) }

// Waiting implements [profiles.WaitingStore].
func (m *MemoryWaiting) Waiting(context.Context) (all []profiles.WaitingCreate, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	for _, r := range m.rows {
		paused := r.paused.After(m.now())
		r.Paused, r.Fresh = paused && r.Turn == 0, paused && r.Turn > 0
		r.MostOfUser, r.MostOfKey = readBack(r.MostOfUser), readBack(r.MostOfKey)
		if r.MostOfUser != nil {
			r.OfUser = m.sessions[r.UserID]
		}
		all = append(all, r.WaitingCreate)
	}
	return all, m.err
}

// readBack returns a quota as a database does: an equal one in other memory.
func readBack(most *int64) *int64 {
	if most == nil {
		return nil
	}
	n := *most
	return &n
}
