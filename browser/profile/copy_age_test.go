package profile

import (
	"testing"
	"time"
)

// A file's times prove nothing soon after a write, whichever clock is used. A time in the
// future, from before the clock was set back, does not cause endless copying.
func TestTooRecent(t *testing.T) {
	const at = int64(1e18)
	for age, want := range map[time.Duration]bool{0: true, minAge - 1: true, minAge: false, time.Hour: false, 1 - minAge: true, -minAge: false, -time.Hour: false} {
		if got := tooRecent(at, at+int64(age)); got != want {
			t.Errorf("copied %v after the change: too young: %t", age, got)
		}
	}
}
