package mux

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

// Where the budget is used up, the client that holds most of the Mux that holds
// most gives way; the others keep what they hold, and what it held is free.
func TestBudget(t *testing.T) {
	b := NewBudget(100)
	one, two := &Mux{}, &Mux{}
	var gone []string
	open := func(of *Mux, name string) *account {
		return b.account(of, func() { gone = append(gone, name) })
	}
	a, c, d := open(one, "a"), open(one, "c"), open(two, "d")
	if !a.take(20) || !c.take(30) || !d.take(45) || len(gone) > 0 {
		t.Fatalf("%q gave way", gone)
	}
	if !d.take(4) || c.take(2) || len(gone) != 1 || gone[0] != "c" {
		t.Errorf("gave way: %q", gone)
	}
	if !a.take(20) || !d.take(3) {
		t.Error("what was given back is not free")
	}
	a.close()
	c.close()
	d.close()
	if used, evicted := b.Use(); used != 0 || evicted != 1 {
		t.Errorf("%d bytes are held, %d gave way", used, evicted)
	}
	if a.take(1) {
		t.Error("a closed account took something")
	}
	var none *account
	none.give(1)
	none.close()
	if !none.take(1) {
		t.Error("what is not counted was refused")
	}
}

// A frame that is larger than allowed, or than there is room for, is passed over:
// its beginning is given, and the next one is whole again.
func TestLargeFrames(t *testing.T) {
	large := `{"id":7,"result":"` + strings.Repeat("x", 5<<20) + `"}`
	for name, test := range map[string]struct {
		limit, room int
		whole       bool
	}{
		"within":       {8 << 20, 64 << 20, true},
		"too large":    {4 << 20, 64 << 20, false},
		"without room": {8 << 20, 2 << 20, false},
	} {
		b := NewBudget(test.room)
		in := frames{r: strings.NewReader(large + "\x00{}\x00" + large + "\x00"), limit: test.limit,
			open: func(evict func()) *account { return b.account(nil, evict) }}
		for _, want := range []string{large, "{}", large} {
			msg, whole, err := in.next()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if whole != (test.whole || want == "{}") || whole && string(msg) != want || !bytes.HasPrefix(msg, []byte(want[:2])) || !whole && len(msg) > headSize {
				t.Errorf("%s: %d bytes, whole %v: %.60s", name, len(msg), whole, msg)
			}
		}
		if _, _, err := in.next(); err != io.EOF {
			t.Errorf("%s: %v", name, err)
		}
		if used, _ := b.Use(); used != 0 {
			t.Errorf("%s: %d bytes are held", name, used)
		}
	}
}
