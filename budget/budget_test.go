package budget

import "testing"

// If the limit is exceeded, the owner that holds most loses its largest account. The
// others keep theirs, and the evicted bytes are free again.
func TestBudget(t *testing.T) {
	b := New(100)
	var evicted []string
	open := func(owner, name string) *Account {
		return b.Open(owner, func() { evicted = append(evicted, name) })
	}
	a, c, d := open("one", "a"), open("one", "c"), open("two", "d")
	if !a.Take(20) || !c.Take(30) || !d.Take(45) || len(evicted) > 0 {
		t.Fatalf("evicted too early: %q", evicted)
	}
	if !d.Take(4) || c.Take(2) || len(evicted) != 1 || evicted[0] != "c" {
		t.Errorf("evicted: %q", evicted)
	}
	if !a.Take(20) || !d.Take(3) {
		t.Error("released bytes are not free")
	}
	a.Close()
	c.Close()
	d.Close()
	if used, evicted := b.Use(); used != 0 || evicted != 1 {
		t.Errorf("%d bytes are held, %d accounts were evicted", used, evicted)
	}
	if a.Take(1) {
		t.Error("a closed account accepted bytes")
	}
	var none *Account
	none.Release(1)
	none.Close()
	if !none.Take(1) {
		t.Error("a nil account refused bytes")
	}
}

// A nil Budget counts nothing.
func TestNoBudget(t *testing.T) {
	var none *Budget
	if a := none.Open("one", nil); !a.Take(1 << 40) {
		t.Error("a nil account refused bytes")
	}
}
