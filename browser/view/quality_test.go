package view

import (
	"testing"
	"time"
)

// The rate of a connection chooses the quality of pictures: it gets worse with one slow
// picture, and better with several fast ones.
func TestQuality(t *testing.T) {
	const text = 300 << 10 // bytes of a picture of a page full of text
	over := func(rate int, size int) time.Duration { return time.Duration(size) * time.Second / time.Duration(rate) }
	var q quality
	if q.level(false) != q.level(true) {
		t.Error("the first picture is not small")
	}
	if !q.measured(30<<10, time.Millisecond) || q.at != 0 || q.level(false) == q.level(true) {
		t.Errorf("after the first picture: %d", q.at)
	}
	if q.measured(text, over(2e6, text)) || q.at != 0 {
		t.Errorf("16 Mbit/s: %d", q.at)
	}
	if !q.measured(text, over(250e3, text)) || q.at != 3 {
		t.Errorf("2 Mbit/s: %d", q.at)
	}
	for range 100 { // small pictures over the same connection, with 150 ms of delay
		if q.measured(6<<10, 175*time.Millisecond) || q.measured(30<<10, 270*time.Millisecond) {
			t.Fatalf("small pictures changed the quality to %d", q.at)
		}
	}
	for want := 2; want >= 0; want-- {
		for i := range fastInARow {
			if q.measured(60<<10, 10*time.Millisecond) != (i == fastInARow-1) {
				t.Fatalf("picture %d of a fast connection: %d", i, q.at)
			}
		}
		if q.at != want {
			t.Errorf("a fast connection: %d, want %d", q.at, want)
		}
	}
}
