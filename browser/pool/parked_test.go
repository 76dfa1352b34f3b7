package pool_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stasisd/stasis/browser/pool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chrome is a fake Chrome that only runs and ends.
type chrome struct {
	once    sync.Once
	done    chan struct{}
	memory  int64
	measure func() // called while its memory is measured
}

func newChrome() *chrome { return &chrome{done: make(chan struct{})} }

func (c *chrome) Kill(context.Context) error {
	c.once.Do(func() { close(c.done) })
	return nil
}
func (c *chrome) Done() <-chan struct{} { return c.done }
func (c *chrome) Memory() int64 {
	if c.measure != nil {
		c.measure()
	}
	return c.memory
}
func (c *chrome) dead() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func TestAParkedChromeServesOneRestore(t *testing.T) {
	p := pool.NewParked[*chrome](pool.Limits{Size: 2, Age: time.Hour})
	defer p.Close(t.Context())
	c := newChrome()
	if err := p.Put(t.Context(), "a", c); err != nil {
		t.Fatal(err)
	}
	if got, ok, _ := p.Take("a", acceptAll); !ok || got != c {
		t.Fatalf("first take = %v %v", got, ok)
	}
	if _, ok, why := p.Take("a", acceptAll); ok || !strings.Contains(why, "served") {
		t.Errorf("second take = %v, why %q", ok, why)
	}
	if c.dead() {
		t.Error("a taken Chrome was ended")
	}
}

func TestFullPoolEvictsOldest(t *testing.T) {
	p := pool.NewParked[*chrome](pool.Limits{Size: 2, Age: time.Hour})
	a, b, c := newChrome(), newChrome(), newChrome()
	for id, x := range map[string]*chrome{"a": a} {
		_ = p.Put(t.Context(), id, x)
	}
	_ = p.Put(t.Context(), "b", b)
	_ = p.Put(t.Context(), "c", c)
	if !a.dead() || b.dead() || c.dead() || p.Len() != 2 {
		t.Errorf("dead: a %v b %v c %v, len %d", a.dead(), b.dead(), c.dead(), p.Len())
	}
	if _, ok, why := p.Take("a", acceptAll); ok || !strings.Contains(why, "evicted") {
		t.Errorf("take a = %v, why %q", ok, why)
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !b.dead() || !c.dead() {
		t.Error("a Chrome still runs after Close")
	}
	late := newChrome()
	if err := p.Put(t.Context(), "d", late); err != nil || !late.dead() {
		t.Errorf("a closed pool kept a Chrome: %v", err)
	}
}

// The memory of all parked Chromes is bounded. The oldest are evicted, and a new one too
// if it alone exceeds the limit.
func TestMemoryLimitEvictsOldest(t *testing.T) {
	p := pool.NewParked[*chrome](pool.Limits{Size: 9, Age: time.Hour, Memory: 100})
	defer p.Close(t.Context())
	put := func(id string, memory int64) *chrome {
		c, weighed := newChrome(), make(chan struct{})
		c.memory, c.measure = memory, func() { close(weighed) }
		if err := p.Put(t.Context(), id, c); err != nil {
			t.Fatal(err)
		}
		<-weighed
		return c
	}
	old, kept := put("old", 60), put("kept", 40)
	put("more", 30)
	<-old.Done()
	if _, _, why := p.Take("old", acceptAll); !strings.Contains(why, "memory") {
		t.Errorf("old: %q", why)
	}
	if kept.dead() || p.Len() != 2 {
		t.Errorf("the newest: dead %v; len %d", kept.dead(), p.Len())
	}
	// A taken Chrome no longer counts.
	if _, ok, why := p.Take("kept", acceptAll); !ok {
		t.Fatal(why)
	}
	fits := put("fits", 70)
	<-put("huge", 101).Done()
	<-fits.Done()
	if p.Len() != 0 {
		t.Errorf("%d remain", p.Len())
	}
}

// The pool does not end a Chrome that is taken while its memory is measured.
func TestTakenWhileMeasured(t *testing.T) {
	p := pool.NewParked[*chrome](pool.Limits{Size: 9, Age: time.Hour, Memory: 100})
	c, begun, taken := newChrome(), make(chan struct{}), make(chan struct{})
	c.memory, c.measure = 101, func() { close(begun); <-taken }
	if err := p.Put(t.Context(), "a", c); err != nil {
		t.Fatal(err)
	}
	<-begun
	if _, ok, why := p.Take("a", acceptAll); !ok {
		t.Fatal(why)
	}
	close(taken)
	if err := p.Close(t.Context()); err != nil || c.dead() {
		t.Errorf("ended %v, %v", c.dead(), err)
	}
}

func TestEvict(t *testing.T) {
	p := pool.NewParked[*chrome](pool.Limits{Size: 2, Age: time.Hour})
	defer p.Close(t.Context())
	a, b := newChrome(), newChrome()
	_ = p.Put(t.Context(), "a", a)
	_ = p.Put(t.Context(), "b", b)
	if evicted, err := p.Evict(t.Context()); !evicted || err != nil || !a.dead() || b.dead() {
		t.Errorf("evicted %v, %v; dead: a %v b %v", evicted, err, a.dead(), b.dead())
	}
	if _, _, why := p.Take("a", acceptAll); !strings.Contains(why, "memory was short") {
		t.Errorf("take a: %q", why)
	}
	_, _, _ = p.Take("b", acceptAll)
	if evicted, err := p.Evict(t.Context()); evicted || err != nil {
		t.Errorf("an empty pool: %v, %v", evicted, err)
	}
}

func TestDeathAndAgeAreReported(t *testing.T) {
	p := pool.NewParked[*chrome](pool.Limits{Size: 4, Age: 20 * time.Millisecond})
	defer p.Close(t.Context())
	aged, died := newChrome(), newChrome()
	_ = p.Put(t.Context(), "aged", aged)
	_ = p.Put(t.Context(), "died", died)
	_ = died.Kill(t.Context())
	<-aged.Done()
	for tick := time.Tick(time.Millisecond); p.Len() > 0; {
		<-tick
	}
	if _, _, why := p.Take("aged", acceptAll); !strings.Contains(why, "age limit") {
		t.Errorf("aged: %q", why)
	}
	if _, ok, why := p.Take("died", acceptAll); ok || why == "" {
		t.Errorf("died: %v %q", ok, why)
	}
	if _, _, why := p.Take("never", acceptAll); !strings.Contains(why, "daemon") {
		t.Errorf("unknown: %q", why)
	}
}

// acceptAll accepts every Chrome.
func acceptAll(*chrome) string { return "" }

func TestAParkedChromeThatDoesNotFitStays(t *testing.T) {
	p := pool.NewParked[*chrome](pool.Limits{Size: 1, Age: time.Hour})
	defer p.Close(t.Context())
	c := newChrome()
	if err := p.Put(t.Context(), "a", c); err != nil {
		t.Fatal(err)
	}
	if _, ok, why := p.Take("a", func(*chrome) string { return "another proxy" }); ok || why != "another proxy" {
		t.Errorf("take = %v, why %q", ok, why)
	}
	if got, ok, _ := p.Take("a", acceptAll); !ok || got != c {
		t.Errorf("it is no longer in the pool: %v %v", got, ok)
	}
}

// If a share is exceeded, the oldest Chromes that count for it are ended, and no others.
func TestSharesOfParkedChromes(t *testing.T) {
	p := pool.NewParked[*chrome](pool.Limits{Size: 10, Age: time.Hour})
	defer p.Close(t.Context())
	put := func(id string, shares ...pool.Share) *chrome {
		t.Helper()
		c := newChrome()
		if err := p.Put(t.Context(), id, c, shares...); err != nil {
			t.Fatal(err)
		}
		return c
	}
	alice, bob := pool.Share{Of: "alice", Most: 2}, pool.Share{Of: "bob", Most: -1}
	first, other := put("a1", alice), put("b1", bob)
	second, third := put("a2", alice), put("a3", alice)
	if !first.dead() || other.dead() || second.dead() || third.dead() || p.CountOf("alice") != 2 || p.CountOf("bob") != 1 {
		t.Errorf("alice has %d, bob %d", p.CountOf("alice"), p.CountOf("bob"))
	}
	if _, ok, why := p.Take("a1", acceptAll); ok || !strings.Contains(why, "quota") {
		t.Errorf("the evicted one: %v, %q", ok, why)
	}
	// A smaller share evicts more, and none keeps none.
	if c := put("a4", pool.Share{Of: "alice", Most: 1}); c.dead() || !second.dead() || !third.dead() || p.CountOf("alice") != 1 {
		t.Errorf("alice has %d", p.CountOf("alice"))
	}
	if c := put("a5", pool.Share{Of: "alice"}); !c.dead() || p.CountOf("alice") != 0 || other.dead() {
		t.Errorf("alice has %d", p.CountOf("alice"))
	}
}
