package placement_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stasisd/stasis/fault"
	"github.com/stasisd/stasis/profiles"
	"github.com/stasisd/stasis/profiles/profilestest"
	"github.com/stasisd/stasis/session/placement"
	"github.com/stasisd/stasis/session/quota"
)

// lines are the lines of several nodes, and the places that the nodes have. It is used in a bubble.
type lines struct {
	t     *testing.T
	store *profilestest.MemoryWaiting
	line  map[string]*placement.Line

	mu      sync.Mutex
	free    map[string]int // what nodes really have
	status  map[string]int // what they have said
	has     map[string]string
	placed  []string
	refused int
	lag     time.Duration // until a node says that a place is taken
	reads   int
	work    sync.WaitGroup
}

func newLines(t *testing.T, nodes ...string) *lines {
	l := &lines{t: t, store: profilestest.NewMemoryWaiting(time.Now), line: map[string]*placement.Line{}, free: map[string]int{}, status: map[string]int{}, has: map[string]string{}}
	for _, id := range nodes {
		l.free[id] = 0
		l.line[id] = placement.NewLine(placement.NewPeers(id, l, time.Now), l.store, 0, slog.New(slog.DiscardHandler))
	}
	return l
}

func (l *lines) Nodes(context.Context) (all []profiles.Node, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	for id := range l.free {
		all = append(all, node(id, placement.Status{Free: l.status[id]}, func(_ *profiles.Node, f *placement.Facts) {
			if engine := l.has[id]; engine != "" {
				f.Engines = map[string]string{engine: "150.0.1.1"}
			}
		}))
	}
	slices.SortFunc(all, func(a, b profiles.Node) int { return strings.Compare(a.ID, b.ID) })
	return all, nil
}

func (l *lines) NodeOf(context.Context, string) (profiles.Place, error) {
	return profiles.Place{}, errors.New("not asked for")
}

// places frees places of a node, which says so.
func (l *lines) places(on string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free[on] += n
	l.status[on] = l.free[on]
}

// ask takes a place of any node for a create.
func (l *lines) ask(name, engine string) (refused bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, free := range l.free {
		if free > 0 && (engine == "" || l.has[id] == "" || l.has[id] == engine) {
			l.free[id]--
			if l.lag == 0 {
				l.status[id] = l.free[id]
			} else {
				time.AfterFunc(l.lag, func() { l.places(id, 0) })
			}
			l.placed = append(l.placed, name)
			return false, nil
		}
	}
	l.refused++
	return true, fault.New(fault.TooManySessions, "test", "full")
}

// create waits on a node, for at most ten minutes. name is "user" or "user/key", and a number.
func (l *lines) create(on, name string, change ...func(*placement.Waiter)) (done chan error) {
	of, _, _ := strings.Cut(name, " ")
	user, key, _ := strings.Cut(of, "/")
	w := placement.Waiter{UserID: user, KeyID: key}
	for _, c := range change {
		c(&w)
	}
	done = make(chan error, 1)
	l.work.Go(func() {
		ctx, cancel := context.WithTimeout(l.t.Context(), 10*time.Minute)
		defer cancel()
		done <- l.line[on].Wait(ctx, w, func() (bool, error) { return l.ask(name, w.Engine) })
	})
	synctest.Wait()
	time.Sleep(time.Millisecond) // each comes later than the one before
	return done
}

// wants frees n places, and checks who gets them within five seconds.
func (l *lines) wants(on string, n int, want ...string) {
	l.t.Helper()
	l.mu.Lock()
	l.placed = nil
	l.mu.Unlock()
	l.places(on, n)
	time.Sleep(5 * time.Second)
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.placed, want) {
		l.t.Errorf("placed %q; want %q", l.placed, want)
	}
}

func (l *lines) end() {
	for _, one := range l.line {
		one.Close()
	}
	l.work.Wait()
}

func code(t *testing.T, err error, want fault.Code) {
	t.Helper()
	if !fault.Is(err, want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// Places go in turn to users, and in turn to the keys of a user, whichever node has the place and
// whichever the create came to.
func TestLineOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLines(t, "a", "b", "c")
		for i, on := range []string{"a", "b", "a", "c"} {
			l.create(on, fmt.Sprintf("ann/k %d", i))
		}
		l.create("c", "ann/l 4")
		l.create("b", "bob/k 5")
		l.create("a", "bob/k 6")
		l.create("b", "eve/k 7")
		if n := l.line["a"].Count() + l.line["b"].Count() + l.line["c"].Count(); n != 8 {
			t.Errorf("%d are counted", n)
		}
		l.wants("c", 1, "ann/k 0")
		l.wants("c", 1, "bob/k 5")
		l.wants("a", 1, "eve/k 7")
		l.wants("b", 1, "ann/l 4")
		l.create("a", "eve/k 8") // had no turn since it waits
		l.wants("b", 1, "eve/k 8")
		l.wants("b", 1, "bob/k 6")
		l.wants("b", 1, "ann/k 1")
		l.wants("a", 1, "ann/k 2")
		l.wants("a", 1, "ann/k 3")
		l.wants("a", 1)
		if before, err := l.line["b"].Before(t.Context(), placement.Wanted{}); before || err != nil {
			t.Errorf("nobody waits, and others go first: %v, %v", before, err)
		}
		l.end()
	})
}

// Several places go to as many creates at once.
func TestLinePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLines(t, "a", "b")
		for i := range 6 {
			l.create([]string{"a", "b"}[i%2], fmt.Sprintf("user%d/k", i))
		}
		l.mu.Lock()
		l.free["a"], l.status["a"] = 3, 3
		l.mu.Unlock()
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		slices.Sort(l.placed)
		if want := []string{"user0/k", "user1/k", "user2/k"}; !slices.Equal(l.placed, want) {
			t.Errorf("placed %q; want %q", l.placed, want)
		}
		l.end()
	})
}

// Nodes say late that a place is taken. The next create does not ask for the same place, and so
// keeps its turn.
func TestLineLateStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLines(t, "a", "b", "c")
		l.lag = 500 * time.Millisecond
		var want []string
		for i := range 9 {
			want = append(want, fmt.Sprintf("user%d/k", i))
			l.create([]string{"a", "b", "c"}[i%3], want[i])
			time.Sleep(100 * time.Millisecond) // so that each node looks at another time
		}
		for i := range 9 {
			l.places([]string{"a", "b", "c"}[i%3], 1)
			time.Sleep(700 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !slices.Equal(l.placed, want) || l.refused > 0 {
			t.Errorf("placed %q after %d refusals; want %q", l.placed, l.refused, want)
		}
		l.end()
	})
}

// A create that no node can take delays no other, nor does one whose quota is reached, or whose
// turn was in vain.
func TestLineDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLines(t, "a", "b")
		l.has["a"], l.has["b"] = "shell", "chrome"
		l.create("a", "ann/k new", func(w *placement.Waiter) {
			w.Engine, w.SnapshotID, w.Chrome = "shell", "snap", "151.0.0.1"
		})
		most := int64(0)
		over := l.create("b", "bob/k over", func(w *placement.Waiter) {
			w.Limits = []quota.Limit{{Share: quota.Share{Holder: quota.Holder{Kind: quota.User, ID: "bob"}, Name: quota.Sessions}, Most: &most}}
		})
		l.create("b", "eve/k chrome", func(w *placement.Waiter) { w.Engine = "chrome" })
		l.create("b", "eve/k shell", func(w *placement.Waiter) { w.Engine = "shell" })
		l.wants("a", 1, "eve/k shell")
		before := func(engine string, want bool) {
			t.Helper()
			if is, err := l.line["a"].Before(t.Context(), placement.Wanted{Engine: engine}); is != want || err != nil {
				t.Errorf("others go before %q: %v, %v", engine, is, err)
			}
		}
		before("shell", false)
		before("chrome", true)
		l.wants("b", 1, "eve/k chrome")

		// b says that it has a place, and refuses: others get their turn, again and again.
		l.mu.Lock()
		l.status["b"], l.refused = 1, 0
		l.mu.Unlock()
		l.create("a", "fay/k 1", func(w *placement.Waiter) { w.Engine = "chrome" })
		l.create("b", "gus/k 2", func(w *placement.Waiter) { w.Engine = "chrome" })
		time.Sleep(10 * time.Second)
		l.mu.Lock()
		if l.refused < 8 || l.refused > 20 {
			t.Errorf("asked %d times in 10 s", l.refused)
		}
		l.mu.Unlock()
		l.wants("b", 2, "fay/k 1", "gus/k 2")
		time.Sleep(10 * time.Minute)
		code(t, <-over, fault.QuotaExceeded)
		l.end()
	})
}

// A create leaves when its client goes, when its time is over, when its node loses the lease and
// when the daemon stops. Nothing of it stays in the way, and nothing is read when nobody waits.
func TestLineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLines(t, "a", "b", "c")
		late := l.create("a", "ann/k 1")
		time.Sleep(5 * time.Minute)
		lost := l.create("b", "ann/k 2")
		stopped := l.create("c", "ann/k 3")
		time.Sleep(5 * time.Minute)
		code(t, <-late, fault.TooManySessions)
		l.line["b"].Lose()
		code(t, <-lost, fault.NodeLost)
		l.line["c"].Close()
		code(t, <-stopped, fault.ShuttingDown)
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { gone <- l.line["a"].Wait(ctx, placement.Waiter{UserID: "ann", KeyID: "k"}, nil) }()
		synctest.Wait()
		leave()
		code(t, <-gone, fault.TooManySessions)
		if all, _ := l.store.Waiting(t.Context()); len(all) != 0 {
			t.Errorf("left: %+v", all)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		was, listed := l.reads, l.store.Reads()
		time.Sleep(time.Hour)
		synctest.Wait()
		if l.reads != was || l.store.Reads() != listed {
			t.Error("the catalogue is read although nobody waits")
		}
		if listed > 10 {
			t.Errorf("who waits was read %d times although all nodes were full", listed)
		}
		l.end()
	})
}

// A create that waits for less time than the shared list is kept ends with the quota that refused it.
func TestLineEndsBeforeListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLines(t, "a")
		l.create("a", "bob/k")
		if _, err := l.line["a"].Before(t.Context(), placement.Wanted{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		w := placement.Waiter{UserID: "ann", KeyID: "k", Refused: fault.New(fault.QuotaExceeded, "test", "")}
		code(t, l.line["a"].Wait(ctx, w, nil), fault.QuotaExceeded)
		l.end()
	})
}

// Creates that end at once share what they read.
func TestLineEndsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLines(t, "a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ended := make(chan error, 100)
		for range cap(ended) {
			go func() { ended <- l.line["a"].Wait(ctx, placement.Waiter{UserID: "ann", KeyID: "k"}, nil) }()
		}
		for range cap(ended) {
			code(t, <-ended, fault.TooManySessions)
		}
		if n := l.store.Reads(); n > 2 {
			t.Errorf("who waits was read %d times", n)
		}
		l.end()
	})
}

// A create waits on while the catalogue does not answer. One that got its turn in vain meanwhile
// returns to its place.
func TestLineWithoutCatalogue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLines(t, "a", "b")
		w := placement.Waiter{UserID: "ann", KeyID: "k"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		asked := 0
		done := make(chan error, 1)
		go func() {
			done <- l.line["a"].Wait(ctx, w, func() (bool, error) {
				if asked++; asked == 1 {
					l.store.Fail(fault.New(fault.CatalogueUnavailable, "test", ""))
					return true, fault.New(fault.TooManySessions, "test", "")
				}
				return l.ask("ann", "")
			})
		}()
		synctest.Wait()
		l.places("b", 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if asked != 1 {
			t.Fatalf("asked %d times", asked)
		}
		l.store.Fail(nil)
		if err := <-done; err != nil || asked != 2 {
			t.Errorf("%v after %d", err, asked)
		}
		l.end()
	})
}

// unanswered loses the answers of the first turns.
type unanswered struct {
	*profilestest.MemoryWaiting
	turns int
}

func (u *unanswered) TakeTurn(ctx context.Context, id string, fresh time.Duration) (bool, error) {
	taken, err := u.MemoryWaiting.TakeTurn(ctx, id, fresh)
	if u.turns++; u.turns < 3 {
		return false, fault.New(fault.CatalogueUnavailable, "test", "")
	}
	return taken, err
}

// A create whose turn was recorded without an answer waits on in its place.
func TestLineTurnWithoutAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLines(t, "a")
		store := &unanswered{MemoryWaiting: l.store}
		l.line["a"] = placement.NewLine(placement.NewPeers("a", l, time.Now), store, 0, slog.New(slog.DiscardHandler))
		done := l.create("a", "ann/k")
		l.places("a", 1)
		if err := <-done; err != nil || store.turns != 3 {
			t.Errorf("%v after %d turns", err, store.turns)
		}
		l.end()
	})
}

// slow takes its time to record the first turn.
type slow struct{ *profilestest.MemoryWaiting }

func (s slow) TakeTurn(ctx context.Context, id string, fresh time.Duration) (bool, error) {
	time.Sleep(5 * time.Second)
	return s.MemoryWaiting.TakeTurn(ctx, id, fresh)
}

// A create that got its turn in vain lets others go first, although its turn was seen several times
// while it was recorded.
func TestLineSlowTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLines(t, "a")
		l.line["a"] = placement.NewLine(placement.NewPeers("a", l, time.Now), slow{l.store}, 0, slog.New(slog.DiscardHandler))
		l.places("a", 1)
		var asked []time.Time
		err := l.line["a"].Wait(t.Context(), placement.Waiter{UserID: "ann", KeyID: "k"}, func() (bool, error) {
			if asked = append(asked, time.Now()); len(asked) == 1 {
				return true, fault.New(fault.TooManySessions, "test", "")
			}
			return l.ask("ann", "")
		})
		if err != nil || len(asked) != 2 || asked[1].Sub(asked[0]) < 6*time.Second {
			t.Errorf("asked at %v, %v; want a pause and a new turn", asked, err)
		}
		l.end()
	})
}
