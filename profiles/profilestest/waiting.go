package profilestest

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stasisd/stasis/profiles"
)

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
