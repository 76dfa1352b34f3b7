package profiles_test

import (
	"testing"

	"github.com/stasisd/stasis/profiles"
)

// The owner is part of paths on disk, so it must never change.
func TestOwnerOf(t *testing.T) {
	// printf abc | sha256sum (FIPS 180-2, B.1)
	if got, want := profiles.OwnerOf("abc"), "ba7816bf8f01cfea414140de5dae2223"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEnded(t *testing.T) {
	for status, want := range map[profiles.Status]bool{
		profiles.StatusInitializing: false, profiles.StatusReady: false, profiles.StatusRunning: false, profiles.StatusPaused: false,
		profiles.StatusCompleted: true, profiles.StatusTerminated: true, profiles.StatusError: true,
	} {
		if got := status.Ended(); got != want {
			t.Errorf("%s: ended %t", status, got)
		}
	}
}
