package pool_test

import (
	"testing"
	"time"

	"github.com/stasisd/stasis/browser/pool"
)

func newStandbys(t *testing.T, age time.Duration) (p *pool.Standbys[*chrome], lost chan struct{}) {
	lost = make(chan struct{}, 10)
	p = pool.NewStandbys[*chrome](age, func() { lost <- struct{}{} })
	t.Cleanup(p.Close)
	return p, lost
}

var one, two = pool.Key{Snapshot: "1", Engine: "chrome"}, pool.Key{Snapshot: "2", Engine: "chrome"}

// A standby can be taken once, with its own key only, and stays in the pool if it does
// not fit.
func TestAStandbyIsTakenByItsKey(t *testing.T) {
	p, _ := newStandbys(t, time.Hour)
	a, b := newChrome(), newChrome()
	p.Put(one, a)
	p.Put(one, b)
	if _, ok, why := p.Take(two, acceptAll); ok || why != "" {
		t.Errorf("another snapshot's: %v, %q", ok, why)
	}
	if _, ok, why := p.Take(pool.Key{Snapshot: "1", Engine: "shell"}, acceptAll); ok || why != "" {
		t.Errorf("another engine's: %v, %q", ok, why)
	}
	if _, ok, why := p.Take(one, func(*chrome) string { return "another proxy" }); ok || why != "another proxy" {
		t.Errorf("one that does not fit: %v, %q", ok, why)
	}
	for _, want := range []*chrome{a, b} {
		if got, ok, _ := p.Take(one, acceptAll); !ok || got != want {
			t.Error("Take did not return the oldest")
		}
	}
	if _, ok, _ := p.Take(one, acceptAll); ok || p.Len() != 0 {
		t.Error("the same standby was taken twice")
	}
}

// Retain ends what is not wanted, the oldest first. Close ends the rest.
func TestStandbysAreRetained(t *testing.T) {
	p, lost := newStandbys(t, time.Hour)
	a, b, c, d := newChrome(), newChrome(), newChrome(), newChrome()
	p.Put(one, a)
	p.Put(two, b)
	p.Put(one, c)
	p.Put(two, d)
	if !p.Retain(map[pool.Key]int{one: 1, two: 2}) || !a.dead() || b.dead() || c.dead() || d.dead() || p.Count(one) != 1 {
		t.Errorf("dead: a %t b %t c %t d %t", a.dead(), b.dead(), c.dead(), d.dead())
	}
	if p.Retain(map[pool.Key]int{one: 1, two: 2}) {
		t.Error("Retain ended one more")
	}
	p.Keep(2)
	if !b.dead() || c.dead() || d.dead() {
		t.Errorf("dead: b %t c %t d %t", b.dead(), c.dead(), d.dead())
	}
	p.Close()
	late := newChrome()
	if p.Put(one, late); !c.dead() || !d.dead() || !late.dead() || p.Len() != 0 {
		t.Error("a closed pool kept a Chrome")
	}
	if len(lost) > 0 {
		t.Error("lost was called for Chromes that the pool ended")
	}
}

// A standby that dies or exceeds the age limit is ended, and lost is called.
func TestLostStandby(t *testing.T) {
	p, lost := newStandbys(t, 20*time.Millisecond)
	aged, died := newChrome(), newChrome()
	p.Put(one, aged)
	p.Put(two, died)
	_ = died.Kill(t.Context())
	<-lost
	<-lost
	if !aged.dead() || p.Len() != 0 {
		t.Errorf("dead %t, %d remain", aged.dead(), p.Len())
	}
}
