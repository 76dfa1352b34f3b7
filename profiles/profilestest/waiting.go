package profilestest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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

// RunWaiting runs the tests of a [profiles.WaitingStore] with two handles on one database, as two
// nodes have. open returns both, without records.
func RunWaiting(t *testing.T, open func(t *testing.T) (one, other profiles.WaitingStore)) {
	tests := map[string]func(w *waitingTest){
		"order": testWaitingOrder, "turns": testWaitingTurns, "turn race": testTurnRace, "pauses and fresh turns": testWaitingPause,
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			one, other := open(t)
			run(&waitingTest{t, one, other, map[string]profiles.WaitingCreate{}})
		})
	}
}

type waitingTest struct {
	*testing.T
	one, other profiles.WaitingStore
	began      map[string]profiles.WaitingCreate
}

// begin records that a create of a user and a key waits on a node.
func (w *waitingTest) begin(on profiles.WaitingStore, id, user, key string) {
	w.Helper()
	c := profiles.WaitingCreate{ID: id, UserID: user, KeyID: key, Engine: "shell", Chrome: "150.0.0.1", Restores: id == "a1"}
	if id == "a1" {
		most := int64(7)
		c.MostOfUser = &most
	}
	w.again(on, c, 0)
}

func (w *waitingTest) again(on profiles.WaitingStore, c profiles.WaitingCreate, pause time.Duration) {
	w.Helper()
	since, err := on.BeginWaiting(w.Context(), c, pause)
	if err != nil {
		w.Fatal(err)
	}
	if !c.Since.IsZero() && !since.Equal(c.Since) {
		w.Errorf("%s waits since %v, not %v", c.ID, since, c.Since)
	}
	c.Since = since
	w.began[c.ID] = c
}

func (w *waitingTest) take(on profiles.WaitingStore, id string, want bool) {
	w.Helper()
	if taken, err := on.TakeTurn(w.Context(), id, 0); err != nil || taken != want {
		w.Fatalf("%s took its turn: %v, %v", id, taken, err)
	}
}

func (w *waitingTest) end(on profiles.WaitingStore, id string) {
	w.Helper()
	if err := on.EndWaiting(w.Context(), id); err != nil {
		w.Fatal(err)
	}
}

// wants checks what both nodes list: turn by ID, in order.
func (w *waitingTest) wants(ids []string, turns ...int64) {
	w.Helper()
	for _, on := range []profiles.WaitingStore{w.one, w.other} {
		all, err := on.Waiting(w.Context())
		if err != nil {
			w.Fatal(err)
		}
		var gotIDs []string
		var gotTurns []int64
		for _, c := range all {
			gotIDs, gotTurns = append(gotIDs, c.ID), append(gotTurns, c.Turn)
			if diff := cmp.Diff(w.began[c.ID], c, cmpopts.IgnoreFields(c, "Turn", "Paused")); diff != "" {
				w.Error(diff)
			}
		}
		if !slices.Equal(gotIDs, ids) || !slices.Equal(gotTurns, turns) {
			w.Errorf("listed %q with turns %v; want %q with %v", gotIDs, gotTurns, ids, turns)
		}
	}
}

// Both nodes list the creates of both in the order in which they came.
func testWaitingOrder(w *waitingTest) {
	w.begin(w.one, "a1", "ann \x00\xff", "k")
	w.begin(w.other, "z", "", "k")
	w.begin(w.one, "b", "bob", "k")
	w.wants([]string{"a1", "z", "b"}, 0, 0, 0)
	w.end(w.other, "z")
	w.end(w.one, "unknown")
	w.wants([]string{"a1", "b"}, 0, 0)
}

// The last turn of each key is remembered while its user waits. A create that got its turn in vain
// waits again in its place.
func testWaitingTurns(w *waitingTest) {
	for i, key := range []string{"k", "k", "l", "k"} {
		w.begin(w.one, []string{"a1", "a2", "a3", "a4"}[i], "ann", key)
	}
	w.begin(w.other, "b", "bob", "k")
	w.take(w.one, "a1", true)
	w.take(w.one, "a1", false)
	w.take(w.other, "b", true)
	w.wants([]string{"a1", "a2", "a3", "a4"}, 1, 0, 0, 0) // bob waits no more
	w.take(w.one, "a3", true)
	w.wants([]string{"a1", "a2", "a3", "a4"}, 1, 0, 2, 0)
	w.take(w.one, "a2", true)
	w.wants([]string{"a2", "a3", "a4"}, 3, 2, 0)
	w.again(w.other, w.began["b"], 0)
	w.again(w.one, w.began["a2"], 0)
	w.wants([]string{"a2", "a3", "a4", "b"}, 0, 2, 0, 0)
	w.end(w.one, "a2")
	w.end(w.one, "a4")
	w.wants([]string{"b"}, 0)
}

// Turns that are taken at once have different numbers, and one create takes its turn once.
func testTurnRace(w *waitingTest) {
	const n = 8
	var ids []string
	for i := range n {
		id := string(rune('a' + i))
		ids = append(ids, id)
		w.begin(w.one, id, id, "k")
		w.begin(w.other, id+" waits on", id, "l")
	}
	var taken atomic.Int32
	var work sync.WaitGroup
	for _, id := range ids {
		for _, on := range []profiles.WaitingStore{w.one, w.other} {
			work.Go(func() {
				if is, err := on.TakeTurn(w.Context(), id, 0); err != nil {
					w.Error(err)
				} else if is {
					taken.Add(1)
				}
			})
		}
	}
	work.Wait()
	if taken.Load() != n {
		w.Errorf("%d turns were taken", taken.Load())
	}
	all, err := w.other.Waiting(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	turns := map[int64]bool{}
	for _, c := range all {
		if c.Turn > 0 {
			turns[c.Turn] = true
		}
	}
	if len(turns) != n {
		w.Errorf("%d creates have turns with %d numbers", n, len(turns))
	}
}

// A pause ends by itself. A turn is fresh for a time, also if nobody else waits.
func testWaitingPause(w *waitingTest) {
	w.begin(w.one, "a", "ann", "k")
	paused := func() bool {
		w.Helper()
		all, err := w.other.Waiting(w.Context())
		if err != nil || len(all) != 1 {
			w.Fatal(all, err)
		}
		return all[0].Paused
	}
	if paused() {
		w.Error("paused at first")
	}
	w.again(w.one, w.began["a"], time.Hour)
	if !paused() {
		w.Error("not paused")
	}
	if taken, err := w.one.TakeTurn(w.Context(), "a", time.Hour); !taken || err != nil {
		w.Fatal(taken, err)
	}
	w.begin(w.one, "b", "bob", "k")
	w.end(w.one, "b")
	if all, err := w.other.Waiting(w.Context()); err != nil || len(all) != 1 || all[0].Paused || !all[0].Fresh {
		w.Errorf("a fresh turn: %+v, %v", all, err)
	}
	w.again(w.one, w.began["a"], time.Millisecond)
	for paused() {
		time.Sleep(time.Millisecond)
	}
}
