package autosave

import (
	"testing"
	"time"
)

// A login that has not changed or has ended is no reason to save.
func TestNewLogin(t *testing.T) {
	for name, now := range map[string]map[string]string{"the same": {"a": "1", "b": "2"}, "one less": {"a": "1"}} {
		if newLogin(map[string]string{"a": "1", "b": "2"}, now) {
			t.Errorf("%s is a new login", name)
		}
	}
}

// Each retry waits longer than the previous one, up to a limit.
func TestRetryIn(t *testing.T) {
	for failures, want := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 4: 40 * time.Second, 99: 5 * time.Minute} {
		if got := retryIn(time.Minute, failures); got != want {
			t.Errorf("after %d failures: %v, want %v", failures, got, want)
		}
	}
}
