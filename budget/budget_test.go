package budget

import "testing"

// Where the budget is used up, the client that holds most of the owner that
// holds most gives way; the others keep what they hold, and what it held is free.
func TestBudget(t *testing.T) {
	b := New(100)
	var gone []string
	open := func(owner, name string) *Account {
		return b.Open(owner, func() { gone = append(gone, name) })
	}
	a, c, d := open("one", "a"), open("one", "c"), open("two", "d")
	if !a.Take(20) || !c.Take(30) || !d.Take(45) || len(gone) > 0 {
		t.Fatalf("%q gave way", gone)
	}
	if !d.Take(4) || c.Take(2) || len(gone) != 1 || gone[0] != "c" {
		t.Errorf("gave way: %q", gone)
	}
	if !a.Take(20) || !d.Take(3) {
		t.Error("what was given back is not free")
	}
	a.Close()
	c.Close()
	d.Close()
	if used, evicted := b.Use(); used != 0 || evicted != 1 {
		t.Errorf("%d bytes are held, %d gave way", used, evicted)
	}
	if a.Take(1) {
		t.Error("a closed account took something")
	}
	var none *Account
	none.Give(1)
	none.Close()
	if !none.Take(1) {
		t.Error("what is not counted was refused")
	}
}

// A nil Budget counts nothing.
func TestNoBudget(t *testing.T) {
	var none *Budget
	if a := none.Open("one", nil); !a.Take(1 << 40) {
		t.Error("what is not counted was refused")
	}
}
