package profile

import (
	"testing"
	"time"
)

// A file's times say nothing soon after it was written, by whichever clock; what
// was written long before the clock was set back is no reason to copy for ever.
func TestTooYoung(t *testing.T) {
	const at = int64(1e18)
	for age, want := range map[time.Duration]bool{0: true, youth - 1: true, youth: false, time.Hour: false, 1 - youth: true, -youth: false, -time.Hour: false} {
		if got := tooYoung(at, at+int64(age)); got != want {
			t.Errorf("copied %v after it changed: %t", age, got)
		}
	}
}
